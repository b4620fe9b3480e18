import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Custody } from "../ownership/ownership.ts";

/**
 * Whether there is a checkpoint of a sandbox that a start found without an instance. Of one that was being restored when the
 * node ended, nobody has seen anything since its checkpoint: to restore it again is no rollback.
 */
export async function canRestore(custody: Custody, record: SandboxRecord): Promise<boolean> {
  const saved = await custody.peek(record.id);
  const newest = saved?.checkpoints.at(-1);
  if (saved === undefined || newest === undefined) return false;
  const isSetBack = record.rolledBackTo !== null && record.rolledBackTo.at > newest.createdAt;
  if (record.state === "restoring" && saved.record.state === "ready" && !isSetBack) {
    const state = await custody.state(record.id);
    await state.commit({ ...saved, record: { ...saved.record, state: "stopped" } });
  }
  return true;
}
