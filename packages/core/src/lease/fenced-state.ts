import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";
import type { JsonObject } from "./json-object.ts";
import { leaseLost } from "./lease-errors.ts";

/** Loose: a node preserves the fields that a newer version added. */
export const fencedStateSchema = z.looseObject({
  /** The epoch of the lease under which it was last claimed. */
  epoch: z.int().positive(),
  /** Counts writes. */
  revision: z.int(),
  /** Identifies this write, so that a node recognizes its own after a lost answer. */
  nonce: z.string(),
  /** Absent if it was claimed but never committed. */
  content: z.unknown().optional(),
});

export type FencedState = z.infer<typeof fencedStateSchema>;

export function stateKey(id: SandboxId): string {
  return `states/${id}.state`;
}

/** Deletes the state of this epoch or an earlier one. */
export async function removeState(state: JsonObject<FencedState>, id: SandboxId, epoch: number): Promise<void> {
  for (let known = await state.read(); known !== undefined; known = await state.read()) {
    if (known.value.epoch > epoch) throw leaseLost(id, epoch);
    if (await state.delete(known)) return;
  }
}
