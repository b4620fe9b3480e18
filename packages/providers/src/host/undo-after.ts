import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** Removes what there is of an instance that did not start, and then fails with the reason it did not. */
export async function undoAfter(error: unknown, id: SandboxId, remove: () => Promise<void>): Promise<never> {
  try {
    await remove();
  } catch (left) {
    throw new SandboxError("internal", {
      reason: "clean_up_failed",
      message: `instance ${id} did not start (${SandboxError.from(error).message}), and could not be removed either`,
      hint: "remove it by its id, or reconcile: it is still in the provider's list",
      cause: left,
    });
  }
  throw error;
}
