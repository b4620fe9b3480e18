import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** Copies what has changed in a record, such as its name or network, to the sandbox's state in the store. */
export async function saveRecord(ownership: Pick<Ownership, "state">, record: SandboxRecord): Promise<void> {
  const state = await ownership.state(record.id);
  if (state.content === undefined) return;
  // The stored sandbox state tells the next owner whether the sandbox ran on after its newest checkpoint.
  const { state: stored } = state.content.record;
  await state.commit({ ...state.content, record: { ...record, state: stored } });
}
