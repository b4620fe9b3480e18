import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture } from "./testing/fixture.ts";

const fixture = await shared(createDockerFixture({ image: { variant: "python" } }));

const python = (code: string) => ["python3", "-c", code];
/** Writes to the memory that it allocates, so that the memory is really used. */
const hog = (mib: number) => python(`x = b"y" * (${mib} << 20); print(len(x))`);

describe("the limit on memory", () => {
  it("does not affect programs within it", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    expect((await sandbox.exec(hog(64))).stdout).toBe(`${64 << 20}\n`);
  });

  it("kills only the program that exceeds it", async () => {
    await using other = await fixture.create();
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const { exitCode, signal } = await sandbox.exec(hog(400));
    expect({ exitCode, signal }).toMatchObject({ signal: "SIGKILL" });
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
    expect((await other.exec("echo untouched")).stdout).toBe("untouched\n");
  });

  it("cannot be exceeded with swap", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const { HostConfig } = await inspect(sandbox);
    expect([HostConfig.Memory, HostConfig.MemorySwap]).toEqual([96 << 20, 96 << 20]);
  });

  it("cannot be exceeded with shared memory", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const { stderr } = await sandbox.exec("head -c 80000000 /dev/zero > /dev/shm/x");
    expect(stderr).toContain("No space left on device");
  });

  it("is the reported reason when only the agent is left to kill", async () => {
    // /tmp is in memory there.
    await using sandbox = await fixture.create({ memoryMib: 64, container: { isRootReadOnly: true } });
    const filling = sandbox.writeFile("/tmp/large", new Uint8Array(100 << 20));
    await expect(filling).rejects.toThrow(/exceeded its memory limit: its limit is 64 MiB/);
    expect(await sandbox.closed).toMatchObject({ reason: "out_of_memory" });
    expect(await fixture.provider.containers.get(sandbox.id)).toMatchObject({
      state: "failed",
      exit: { isOutOfMemory: true },
    });
  });
});

describe("the limit on CPU time", () => {
  it("slows a busy container down", async () => {
    // Less than a busy machine gives to one process, so that the limit applies there, too.
    await using sandbox = await fixture.create({ vcpuCount: 0.05 });
    const before = await timesThrottled(sandbox);
    await sandbox.exec(python("sum(i * i for i in range(2_000_000))"));
    expect(await timesThrottled(sandbox)).toBeGreaterThan(before);
  });

  it("may exceed the processors of the engine's machine", async () => {
    await using sandbox = await fixture.create({ vcpuCount: 16 });
    expect((await sandbox.exec("echo made")).stdout).toBe("made\n");
  });
});

describe("the limit on processes", () => {
  it.each(["user", "root"])("stops %s from starting more processes", async (user) => {
    await using sandbox = await fixture.create({ maxProcesses: 24 });
    const forkMany = python("import os\nfor i in range(60):\n  os.fork() or os.execvp('sleep', ['sleep', '60'])");
    const { exitCode, stderr } = await sandbox.exec(forkMany, { user });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/Resource temporarily unavailable/);
  });

  it("keeps the host and other sandboxes usable under a fork bomb, which destroy ends", async () => {
    await using other = await fixture.create();
    await using sandbox = await fixture.create({ maxProcesses: 128, memoryMib: 256, vcpuCount: 1 });
    const directory = await cgroup(sandbox, "pids");
    await sandbox.start(["bash", "-c", ":(){ :|:& };:; sleep 600"], { user: "user" });
    await expect.poll(() => tasks(directory)).toBeGreaterThan(100);
    expect((await other.exec("echo other")).stdout).toBe("other\n");
    expect(await tasks(directory)).toBeLessThanOrEqual(128 + 8);
    await sandbox.destroy();
    expect(await tasks(directory)).toBe(0);
  });
});

function inspect({ id }: Sandbox) {
  return fixture.engine.docker.getContainer(containerName(id)).inspect();
}

async function timesThrottled(sandbox: Sandbox): Promise<number> {
  const directory = await cgroup(sandbox, "cpu");
  return Number(/nr_throttled (\d+)/.exec(await readFile(join(directory, "cpu.stat"), "utf8"))?.[1]);
}

/** Zero for a removed cgroup. */
async function tasks(directory: string): Promise<number> {
  return Number(await readFile(join(directory, "pids.current"), "utf8").catch(() => "0"));
}

/** cgroup v1 has a hierarchy for each controller, v2 one for all. */
async function cgroup(sandbox: Sandbox, controller: string): Promise<string> {
  const { State } = await inspect(sandbox);
  const lines = (await readFile(`/proc/${State.Pid}/cgroup`, "utf8")).trim().split("\n");
  const fields = lines.map((line) => line.split(":"));
  const [, controllers = "", path = ""] =
    fields.find(([, names]) => names?.split(",").includes(controller)) ?? fields[0] ?? [];
  return join("/sys/fs/cgroup", controllers, path);
}
