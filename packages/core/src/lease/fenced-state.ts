import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";
import type { JsonObject } from "./json-object.ts";
import { leaseLost } from "./lease-errors.ts";

export const fencedStateSchema = z.object({
  /** Of the lease under which it was claimed last. */
  epoch: z.int().positive(),
  /** Counts writes. */
  revision: z.int(),
  /** Tells this write from every other one, so that a node recognises its own after an answer was lost. */
  nonce: z.string(),
  /** Absent: claimed, but nothing was ever committed. */
  content: z.unknown().optional(),
});

export type FencedState = z.infer<typeof fencedStateSchema>;

export function stateKey(id: SandboxId): string {
  return `states/${id}.state`;
}

/** Deletes what this epoch, or an earlier one, has left. */
export async function removeState(state: JsonObject<FencedState>, id: SandboxId, epoch: number): Promise<void> {
  for (let known = await state.read(); known !== undefined; known = await state.read()) {
    if (known.value.epoch > epoch) throw leaseLost(id, epoch);
    if (await state.delete(known)) return;
  }
}
