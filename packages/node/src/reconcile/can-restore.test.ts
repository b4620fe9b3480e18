import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it, onTestFinished } from "vitest";
import { composeParts } from "../start/domain.ts";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { NodeReconciler } from "./node-reconciler.ts";

function startParts(home: string, provider: MockProvider) {
  const onError = () => {};
  return composeParts(parseNodeConfig({ home }), { providers: [provider], onError });
}

/** A sandbox whose node ends while it restores it, and what the next start makes of that. */
async function interruptRestore(change: Partial<SandboxRecord> = {}) {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-interrupted-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const before = startParts(home, new MockProvider());
  const { key } = before.keys.create({ name: "test" });
  const owner = before.authenticator.authenticate(key);
  const { id } = await before.service.create(owner, { provider: "mock" });
  await before.service.open(owner, id).exec({ command: "echo saved > file" });
  await before.checkpoints.create(owner, id, {});
  before.records.change(id, { state: "restoring", ...change });
  const provider = (before.providers.byName.get("mock") as MockProvider).die();
  before.database[Symbol.dispose]();

  const parts = startParts(home, provider);
  onTestFinished(async () => {
    await parts.spares[Symbol.asyncDispose]();
    parts.database[Symbol.dispose]();
  });
  const reconciled = await new NodeReconciler(parts).reconcile();
  const left = provider.size;
  await parts.locator.locate(owner, id);
  const { stdout } = await parts.service.open(owner, id).exec({ command: "cat file" });
  const { rolledBackTo } = parts.service.get(owner, id);
  return { id, reconciled, left, stdout, rolledBackTo };
}

describe("a sandbox that was being restored when its node ended", () => {
  it("is restored again, without what was left of the first time, and that is no rollback", async () => {
    const { id, reconciled, left, stdout, rolledBackTo } = await interruptRestore();
    expect(reconciled).toMatchObject({ adopted: [], lost: [], setBack: [id] });
    expect({ left, stdout, rolledBackTo }).toEqual({ left: 0, stdout: "saved\n", rolledBackTo: null });
  });

  it("says that it was set back when that was the reason for restoring it", async () => {
    const at = new Date(Date.now() + 1000).toISOString();
    const { rolledBackTo } = await interruptRestore({
      rolledBackTo: { checkpoint: "c", createdAt: at, at },
      rollbacks: 1,
    });
    expect(rolledBackTo).toMatchObject({ checkpoint: expect.not.stringMatching(/^c$/) });
  });
});
