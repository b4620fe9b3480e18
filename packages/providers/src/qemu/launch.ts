import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { QemuPlace } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** What fails half-way leaves nothing behind. */
export async function undoneOnFailure<T>(host: QemuPlace, id: SandboxId, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    await removeInstance(host, id).catch((left: unknown) => Promise.reject(cleanUpFailed(id, error, left)));
    throw error;
  }
}

function cleanUpFailed(id: SandboxId, error: unknown, left: unknown): SandboxError {
  return new SandboxError("internal", {
    reason: "clean_up_failed",
    message: `instance ${id} did not start (${SandboxError.from(error).message}), and could not be removed either`,
    hint: "remove it by its id, or reconcile: it is still in the provider's list",
    cause: left,
  });
}
