import type { EventKind } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

/** Kills a node at the first event of a kind while it works, and starts the next one. */
async function crashAt(
  kind: EventKind,
  home: GvisorHome,
  work: (node: NodeProcess) => Promise<void>,
): Promise<NodeProcess> {
  const first = await NodeProcess.start({ home: home.path, port: 0, pools: [{ target: 2 }] });
  await work(first);
  for await (const event of first.client.events({ after: 0 })) if (event.kind === kind) break;
  await first.kill();
  return await NodeProcess.start({ home: home.path, port: 0 });
}

/** Every ready sandbox of the records runs, and nothing else does. */
async function expectRecordsMatchInstances(home: GvisorHome, node: NodeProcess): Promise<void> {
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

describe("a node that starts after a crash", () => {
  it.each(["sandbox.created", "sandbox.ready"] as const)(
    "adopts every sandbox and removes every other instance when creates were under way (killed at the first %s)",
    async (kind) => {
      await using home = new GvisorHome();
      await using node = await crashAt(kind, home, async ({ client }) => {
        for (const memoryMib of [256, 256, 200, 200, 201]) client.sandboxes.create({ memoryMib }).catch(() => {});
      });
      await expectRecordsMatchInstances(home, node);
    },
  );

  it("adopts or removes each sandbox when destroys were under way", async () => {
    await using home = new GvisorHome();
    await using node = await crashAt("sandbox.destroyed", home, async ({ client }) => {
      const made = await Promise.all(Array.from({ length: 4 }, () => client.sandboxes.create({ memoryMib: 200 })));
      for (const sandbox of made) sandbox.destroy().catch(() => {});
    });
    await expectRecordsMatchInstances(home, node);
  });
});

describe("a second node on the directory of a running one", () => {
  it("does not start and leaves the first one's sandboxes running", async () => {
    await using home = new GvisorHome();
    await using first = await NodeProcess.start({ home: home.path, port: 0 });
    const sandbox = await first.client.sandboxes.create();
    await expect(NodeProcess.start({ home: home.path, port: 0 })).rejects.toThrow("did not start");
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
    await sandbox.destroy();
  });
});
