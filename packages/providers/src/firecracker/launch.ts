import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { undoAfter } from "../host/undo-after.ts";
import type { FirecrackerState } from "./host.ts";
import { explainMachine } from "./machine/start-machine.ts";
import { removeInstance } from "./remove-instance.ts";

/** What fails half-way leaves nothing behind, and says the machine's last words. */
export async function undoneOnFailure<T>(host: FirecrackerState, id: SandboxId, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    return await undoAfter(await explain(host, id, error), id, () => removeInstance(host, id));
  }
}

/** A process that ended in the middle of a request left its reason in its log. */
async function explain(host: FirecrackerState, id: SandboxId, error: unknown): Promise<unknown> {
  if (!(error instanceof SandboxError) || error.reason !== "firecracker_gone") return error;
  const explanation = await explainMachine(host.store.directory(id));
  return new SandboxError("internal", {
    reason: "boot_failed",
    message: `the virtual machine of instance ${id} ended while it started: ${explanation || error.message}`,
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
    cause: error,
  });
}
