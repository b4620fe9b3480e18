import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/**
 * Whether a sandbox without an instance has a checkpoint. If the node died while it restored the sandbox, nothing has
 * happened since the checkpoint, and restoring it again is not a rollback.
 */
export async function canRestore(ownership: Ownership, record: SandboxRecord): Promise<boolean> {
  const saved = await ownership.peek(record.id);
  const newest = saved?.checkpoints.at(-1);
  if (saved === undefined || newest === undefined) return false;
  const isRolledBack = record.rolledBackTo !== null && record.rolledBackTo.at > newest.createdAt;
  if (record.state === "restoring" && saved.record.state === "ready" && !isRolledBack) {
    const state = await ownership.state(record.id);
    await state.commit({ ...saved, record: { ...saved.record, state: "stopped" } });
  }
  return true;
}
