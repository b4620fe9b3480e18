import type { SandboxId } from "@sandpiper/protocol";
import { undoAfter } from "../host/undo-after.ts";
import type { QemuState } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** Removes an instance that fails to start. */
export async function undoneOnFailure<T>(host: QemuState, id: SandboxId, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    return await undoAfter(error, id, () => removeInstance(host, id));
  }
}
