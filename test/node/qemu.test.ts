import { rejection } from "@sandpiper/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { crashMachine, machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { NodeProcess } from "./node-process.ts";
import { MACHINE, QemuHome } from "./qemu-home.ts";

/** The first machine of its configuration boots, and its image may have to be built. */
const FIRST_MS = 120_000;
const home = await shared(QemuHome.make());
const start = () => NodeProcess.start(home.config());
const crash = (id: string) => crashMachine(id as Parameters<typeof crashMachine>[0]);
let node = await start();
afterAll(() => node[Symbol.asyncDispose]());

describe("a node with virtual machines", () => {
  it(
    "checkpoints, forks, rolls back, pauses and resumes them, and adopts them after kill -9",
    async () => {
      const sandbox = await node.client.sandboxes.create(MACHINE);
      const counting = await sandbox.start("echo kept > file; i=0; while sleep 0.1; do i=$((i+1)); echo $i; done");
      await expect.poll(async () => (await sandbox.exec("cat file")).stdout).toBe("kept\n");
      await sandbox.checkpoint({ name: "before" });
      await sandbox.exec("echo changed > file");
      const [fork] = await sandbox.fork();
      expect((await fork?.exec("cat file; hostname"))?.stdout).toMatch(/^changed\nsandbox-/);
      await fork?.destroy();
      await sandbox.rollback("before");
      await sandbox.pause();
      await sandbox.resume();
      await node.kill();
      node = await start();
      const again = await node.client.sandboxes.connect(sandbox.id);
      expect((await again.exec("cat file")).stdout).toBe("kept\n");
      const running = (await again.processes()).filter(({ isRunning }) => isRunning).map(({ id }) => id);
      expect(running).toEqual([counting.id]);
      await again.destroy();
      expect(home.left()).toEqual([]);
    },
    FIRST_MS,
  );

  it("reports a machine whose QEMU was killed as failed, and leaves nothing of it behind", async () => {
    const sandbox = await node.client.sandboxes.create(MACHINE);
    expect(home.left().toSorted()).toEqual(
      [...(await machineProcesses(sandbox.id)).map(String), sandbox.id].toSorted(),
    );
    const sleeping = await sandbox.start("sleep 600");
    const waiting = expect(sleeping.wait()).rejects.toMatchObject({ code: "gone" });
    await crash(sandbox.id);
    await waiting;
    await expect.poll(async () => (await sandbox.refresh()).state).toBe("failed");
    await expect(sandbox.exec("true")).rejects.toMatchObject({ code: "gone", reason: "sandbox_failed" });
    await sandbox.destroy();
    expect(await home.traces(sandbox.id)).toEqual([]);
    expect(home.left()).toEqual([]);
  });

  it("returns a machine whose QEMU was killed to its newest checkpoint at its next use, and reports it", async () => {
    const sandbox = await node.client.sandboxes.create(MACHINE);
    await sandbox.exec("echo saved > file");
    const { id: checkpoint } = await sandbox.checkpoint();
    await sandbox.exec("echo lost > file");
    const running = rejection(sandbox.exec("sleep 600"));
    await crash(sandbox.id);
    expect(await running).toMatchObject({ code: "gone", retryable: false });
    expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
    expect((await node.client.sandboxes.connect(sandbox.id)).info).toMatchObject({ rolledBackTo: { checkpoint } });
    await sandbox.destroy();
    expect(home.left()).toEqual([]);
  });

  it("restores checkpointed machines after both died, reports the others as lost, and leaves nothing behind", async () => {
    const [saved, lost] = await Promise.all([
      node.client.sandboxes.create(MACHINE),
      node.client.sandboxes.create(MACHINE),
    ]);
    await saved.exec("echo kept > file");
    await saved.checkpoint();
    await saved.exec("echo later > file");
    await node.kill();
    for (const { id } of [saved, lost]) await crash(id);
    node = await start();
    expect(node.started).toMatchObject({ adopted: [], lost: [lost.id] });
    expect(home.left()).toEqual([]);
    const again = await node.client.sandboxes.connect(saved.id);
    expect((await again.exec("cat file")).stdout).toBe("kept\n");
    expect((await again.refresh()).rolledBackTo).not.toBeNull();
    expect((await node.client.sandboxes.connect(lost.id)).info).toMatchObject({ state: "failed" });
    await again.destroy();
    expect(home.left()).toEqual([]);
  });

  it("adopts the machines it had created when it was killed, and removes unfinished ones", async () => {
    for (let count = 0; count < 3; count++) node.client.sandboxes.create(MACHINE).catch(() => {});
    await expect.poll(() => home.left().length, { interval: 5 }).toBeGreaterThan(0);
    await node.kill();
    node = await start();
    const ready: string[] = [];
    for await (const sandbox of node.client.sandboxes.list({ state: "ready" })) ready.push(sandbox.id);
    expect(node.started.adopted.toSorted()).toEqual(ready.toSorted());
    for (const id of ready) await (await node.client.sandboxes.connect(id)).destroy();
    expect(home.left()).toEqual([]);
  });

  it("that keeps prepared machines has none left when it stops", async () => {
    await node.stop();
    node = await NodeProcess.start(home.config({ qemu: { prepared: 1 } }));
    await (await node.client.sandboxes.create(MACHINE)).destroy();
    // A prepared machine is a process and a directory.
    await expect.poll(() => home.left()).toHaveLength(2);
    const ready = home.left().find((name) => name.includes("~")) ?? "";
    await node.stop();
    expect(home.left()).toEqual([]);
    expect(await home.traces(ready.slice(0, ready.indexOf("~")))).toEqual([]);
  });
});
