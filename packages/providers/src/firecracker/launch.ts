import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { undoAfter } from "../host/undo-after.ts";
import type { FirecrackerState } from "./host.ts";
import { explainMachine } from "./machine/start-machine.ts";
import { removeInstance } from "./remove-instance.ts";

/** Removes an instance that fails to start, and adds the machine's last output to the error. */
export async function undoneOnFailure<T>(host: FirecrackerState, id: SandboxId, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    return await undoAfter(await explain(host, id, error), id, () => removeInstance(host, id));
  }
}

/** A process that ends during a request leaves the reason in its log. */
async function explain(host: FirecrackerState, id: SandboxId, error: unknown): Promise<unknown> {
  if (!(error instanceof SandboxError) || error.reason !== "firecracker_gone") return error;
  const explanation = await explainMachine(host.store.directory(id));
  return new SandboxError("boot_failed", {
    message: `the virtual machine of instance ${id} ended while it started: ${explanation || error.message}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
    cause: error,
  });
}
