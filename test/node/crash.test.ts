import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

/** Kills a node at some moment of what it is asked to do, and gives the next one. */
async function crash(home: GvisorHome, busy: (node: NodeProcess) => Promise<void>): Promise<NodeProcess> {
  const first = await NodeProcess.start({ home: home.path, port: 0, pools: [{ target: 2 }] });
  await busy(first);
  await first.kill();
  return await NodeProcess.start({ home: home.path, port: 0 });
}

/** What the records say is what runs: neither more nor less. */
async function expectTruth(home: GvisorHome, node: NodeProcess): Promise<void> {
  const ready: string[] = [];
  for await (const sandbox of node.client.sandboxes.list()) {
    expect(["ready", "failed"]).toContain(sandbox.state);
    if (sandbox.state !== "ready") continue;
    ready.push(sandbox.id);
    expect((await sandbox.exec("echo here")).stdout).toBe("here\n");
  }
  expect(await home.instances()).toEqual(ready.sort());
  expect(node.started.adopted.toSorted()).toEqual(ready);
}

describe("a node that was killed", () => {
  it.each([30, 150])("in the middle of creates, after %i ms, leaves nothing that nobody has", async (afterMs) => {
    await using home = new GvisorHome();
    await using node = await crash(home, async ({ client }) => {
      for (const memoryMib of [256, 256, 200, 200, 201]) client.sandboxes.create({ memoryMib }).catch(() => {});
      await sleep(afterMs);
    });
    await expectTruth(home, node);
  });

  it("in the middle of destroys has destroyed them or has them", async () => {
    await using home = new GvisorHome();
    await using node = await crash(home, async ({ client }) => {
      const made = await Promise.all(Array.from({ length: 4 }, () => client.sandboxes.create({ memoryMib: 200 })));
      for (const [at, sandbox] of made.entries()) sleep(at * 30).then(() => sandbox.destroy().catch(() => {}));
      await sleep(100);
    });
    await expectTruth(home, node);
  });
});

describe("a second node on the directory of one that runs", () => {
  it("does not start, and takes nothing away", async () => {
    await using home = new GvisorHome();
    await using first = await NodeProcess.start({ home: home.path, port: 0 });
    const sandbox = await first.client.sandboxes.create();
    await expect(NodeProcess.start({ home: home.path, port: 0 })).rejects.toThrow("did not start");
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
    await sandbox.destroy();
  });
});
