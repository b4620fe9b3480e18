import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput, countTo, numbersTo } from "./numbered-output.ts";

describe("a node that restarts after kill -9", () => {
  it("adopts its sandboxes with their files, and resumes a command's output at the byte its reader had reached", async () => {
    await using home = new GvisorHome();
    const first = await NodeProcess.start({ home: home.path, port: 0 });
    const sandbox = await first.client.sandboxes.create({ name: "survivor", env: { A: "1" } });
    await sandbox.files.write("/home/user/kept.txt", "kept");
    const process_ = await sandbox.start(`${countTo(100)}; exit 7`);
    let seen = "";
    let offset = 0;
    for await (const chunk of process_.output) {
      seen += new TextDecoder().decode(chunk.bytes);
      offset = chunk.offset + chunk.bytes.length;
      if (seen.includes("\n5\n")) break;
    }
    await first.kill();

    await using second = await NodeProcess.start({ home: home.path, port: 0 });
    expect(second.started).toMatchObject({ adopted: [sandbox.id], lost: [], removed: [] });
    const again = await second.client.sandboxes.connect(sandbox.id);
    expect(again.info).toMatchObject({ state: "ready", name: "survivor" });
    expect(await again.files.readText("/home/user/kept.txt")).toBe("kept");
    expect((await again.exec('echo "$A"')).stdout).toBe("1\n");
    const attached = await again.attach(process_.id, { offset });
    const rest = await collectOutput(attached).ended;
    expect(seen + rest).toBe(numbersTo(100));
    expect((await attached.wait()).exitCode).toBe(7);
    await again.destroy();
  });

  it("reports a sandbox that died meanwhile as failed, and removes unclaimed instances", async () => {
    await using home = new GvisorHome();
    const first = await NodeProcess.start({ home: home.path, port: 0, pools: [{ target: 1 }] });
    const dead = await first.client.sandboxes.create({ memoryMib: 300 });
    await expect.poll(async () => (await first.client.pools.list())[0]?.ready).toBe(1);
    await first.kill();
    await home.removeInstance(dead.id);

    await using second = await NodeProcess.start({ home: home.path, port: 0 });
    expect(second.started).toMatchObject({ adopted: [], lost: [dead.id] });
    expect(second.started.removed).toHaveLength(1);
    const found = await second.client.sandboxes.connect(dead.id);
    expect(found.info).toMatchObject({ state: "failed", failure: { reason: "instance_lost" } });
    expect(await home.instances()).toEqual([]);
  });
});
