import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProgramResult } from "../host/run-program.ts";
import type { GvisorHost } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** Throws when runsc did not do what it was to do for an instance. */
export async function requireLaunched(
  host: GvisorHost,
  { id }: InstanceSpec,
  { exitCode, failure }: ProgramResult,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (exitCode === 0) return;
  const explanation = failure ?? (await host.runsc.explain(host.store.directory(id)));
  throw new SandboxError("internal", {
    reason: "boot_failed",
    message: `gVisor could not start instance ${id}: ${explanation || "runsc gave no reason"}`,
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  });
}

/** What fails half-way leaves nothing behind. */
export async function undoneOnFailure<T>(host: GvisorHost, id: SandboxId, start: () => Promise<T>): Promise<T> {
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
