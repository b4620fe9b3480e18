import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** Removes an instance that did not start, and then rejects with the original error. */
export async function undoAfter(error: unknown, id: SandboxId, remove: () => Promise<void>): Promise<never> {
  try {
    await remove();
  } catch (left) {
    throw new SandboxError("cleanup_failed", {
      message: `instance ${id} did not start (${SandboxError.from(error).message}), and could not be removed`,
      hint: "remove it by its id, or reconcile: the provider still lists it",
      cause: left,
    });
  }
  throw error;
}
