import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProgramResult } from "../host/run-program.ts";
import { undoAfter } from "../host/undo-after.ts";
import type { GvisorHost } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** Throws when a runsc command for an instance failed. */
export async function requireLaunched(
  host: GvisorHost,
  { id }: InstanceSpec,
  { exitCode, failure }: ProgramResult,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (exitCode === 0) return;
  const explanation = failure ?? (await host.runsc.explain(host.store.directory(id)));
  throw new SandboxError("boot_failed", {
    message: `gVisor could not start instance ${id}: ${explanation || "runsc gave no reason"}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
  });
}

/** Removes an instance that fails to start. */
export async function undoneOnFailure<T>(host: GvisorHost, id: SandboxId, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    return await undoAfter(error, id, () => removeInstance(host, id));
  }
}
