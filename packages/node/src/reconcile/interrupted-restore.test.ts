import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { mockNode } from "../testing/mock-node.ts";
import { NodeReconciler } from "./node-reconciler.ts";

/** Ends a node while it restores a sandbox, starts it again, and uses the sandbox. */
async function interruptRestore(change: Partial<SandboxRecord> = {}) {
  const before = mockNode({ provider: new MockProvider() });
  const { owner } = before;
  const { id } = await before.sandboxes.create(owner, { provider: "mock" });
  await before.open(id).exec({ command: "echo saved > file" });
  await before.checkpoints.create(owner, id, {});
  before.records.change(id, { state: "restoring", ...change });
  const provider = before.die();

  const node = mockNode({ home: before.home, provider });
  const reconciled = await new NodeReconciler(node).reconcile();
  const instances = provider.size;
  await node.locator.claim(owner, id, { purpose: "use", readOnly: true });
  const { stdout } = await node.open(id).exec({ command: "cat file" });
  const { rolledBackTo } = node.sandboxes.get(owner, id);
  return { id, reconciled, instances, stdout, rolledBackTo };
}

describe("a sandbox whose node ended while restoring it", () => {
  it("is restored again without leftovers, and without a rollback", async () => {
    const { id, reconciled, instances, stdout, rolledBackTo } = await interruptRestore();
    expect(reconciled).toMatchObject({ adopted: [], lost: [], setBack: [id] });
    expect({ instances, stdout, rolledBackTo }).toEqual({ instances: 0, stdout: "saved\n", rolledBackTo: null });
  });

  it("reports the rollback if the interrupted restore was one", async () => {
    const at = new Date(Date.now() + 1000).toISOString();
    const { rolledBackTo } = await interruptRestore({
      rolledBackTo: { checkpoint: "c", createdAt: at, at },
      rollbacks: 1,
    });
    expect(rolledBackTo).toMatchObject({ checkpoint: expect.not.stringMatching(/^c$/) });
  });
});
