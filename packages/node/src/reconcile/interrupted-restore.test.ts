import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { testDomain } from "../testing/test-domain.ts";
import { NodeReconciler } from "./node-reconciler.ts";

function startParts(home: string, provider: MockProvider) {
  const onError = () => {};
  return testDomain(parseNodeConfig({ home }), { providers: [provider], onError });
}

/** Ends a node while it restores a sandbox, starts it again, and uses the sandbox. */
async function interruptRestore(change: Partial<SandboxRecord> = {}) {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-interrupted-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const before = startParts(home, new MockProvider());
  const { key } = before.keys.create({ name: "test" });
  const owner = before.authenticator.authenticate(key);
  const { id } = await before.sandboxes.create(owner, { provider: "mock" });
  await before.access.open(owner, id, { readOnly: false }).exec({ command: "echo saved > file" });
  await before.checkpoints.create(owner, id, {});
  before.records.change(id, { state: "restoring", ...change });
  const provider = (before.providers.byName.get("mock") as MockProvider).die();
  before.database[Symbol.dispose]();

  const parts = startParts(home, provider);
  onTestFinished(async () => {
    await parts.prepared[Symbol.asyncDispose]();
    parts.database[Symbol.dispose]();
  });
  const reconciled = await new NodeReconciler(parts).reconcile();
  const instances = provider.size;
  await parts.locator.claim(owner, id, { purpose: "use", readOnly: true });
  const { stdout } = await parts.access.open(owner, id, { readOnly: false }).exec({ command: "cat file" });
  const { rolledBackTo } = parts.sandboxes.get(owner, id);
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
