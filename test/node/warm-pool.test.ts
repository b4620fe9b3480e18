import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

/** Everything that a program can inspect, without times: a pooled sandbox is older. */
const LOOK = `
  id; env | grep -v SANDPIPER_PROCESS | sort; tr '\\0' '\\n' < /proc/1/environ; hostname
  ls -laR --time-style=+ /tmp /var/tmp /home/user /run /dev/shm; ls -la --time-style=+ /
  for p in /proc/[0-9]*; do echo "$p $(tr '\\0' ' ' < $p/cmdline)"; done
  mount; cat /proc/self/limits /etc/hostname /etc/hosts /etc/passwd /proc/self/cgroup; ls /proc/1/fd
  df -k / | tail -1; echo "pid $$"`;

async function waitUntilReady(node: NodeProcess): Promise<void> {
  await expect.poll(async () => (await node.client.pools.list())[0]?.ready).toBe(1);
}

async function seen(sandbox: Sandbox): Promise<string> {
  const { stdout, exitCode } = await sandbox.exec(LOOK);
  expect(exitCode).toBe(0);
  return stdout;
}

describe("a sandbox from a warm pool on gVisor", () => {
  it("looks the same as a freshly booted one, from inside and through the API", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    const { sandboxes, pools } = node.client;
    const wanted = { labels: { a: "b" }, env: { SECRET: "mine" }, memoryMib: 200 };
    const cold = await sandboxes.create({ ...wanted, name: "cold" });
    await pools.set({ target: 1, memoryMib: 200 });
    await waitUntilReady(node);
    const waiting = await home.instances();
    const warm = await sandboxes.create({ ...wanted, name: "warm" });
    expect(waiting).toContain(warm.id);

    expect(await seen(warm)).toBe(await seen(cold));
    const outside = ({ id: _, token: __, createdAt: ___, name: ____, ...rest }: Sandbox["info"]) => rest;
    expect(outside(warm.info)).toEqual(outside(cold.info));
    expect(Date.parse(warm.info.createdAt)).toBeGreaterThan(Date.parse(cold.info.createdAt));
    expect(await warm.processes()).toEqual([]);
    expect((await warm.exec('echo "$SECRET"')).stdout).toBe("mine\n");
    await Promise.all([warm.destroy(), cold.destroy()]);
  });

  it("has never been used before and contains no files of an earlier sandbox", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, pools: [{ target: 1 }] });
    const used = new Set<string>();
    for (let turn = 0; turn < 3; turn++) {
      await waitUntilReady(node);
      const sandbox = await node.client.sandboxes.create();
      expect(used.has(sandbox.id)).toBe(false);
      used.add(sandbox.id);
      expect((await sandbox.exec("cat /tmp/left; ls -A /tmp /home/user/.left")).stdout).not.toContain("left");
      await sandbox.exec("echo secret > /tmp/left; touch /home/user/.left");
      await sandbox.destroy();
    }
  });
});
