import { SandboxError } from "@sandpiper/core";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export function notReady({ id, state, provider, stoppedAt }: SandboxRecord): SandboxError {
  const details = { id, state };
  if (state === "stopped" && stoppedAt !== null) {
    const message = `sandbox ${id} was stopped at ${stoppedAt.toISOString()}`;
    return new SandboxError("stopped_by_owner", { message, details });
  }
  if (state === "paused") {
    return new SandboxError("sandbox_paused", { message: `sandbox ${id} is paused`, details });
  }
  if (state === "ready") {
    return new SandboxError("not_found_yet", {
      message: `sandbox ${id} cannot be reached yet: provider ${provider} has not reported its instance`,
      details,
    });
  }
  return new SandboxError("not_ready", {
    message: `sandbox ${id} is ${state}`,
    hint: "wait until its state is ready",
    details,
  });
}

export function beingDestroyed({ id, state }: SandboxRecord): SandboxError {
  return new SandboxError("sandbox_destroyed", { message: `sandbox ${id} is being destroyed`, details: { id, state } });
}

/** Not the reason of the failure: a caller must not take it for the outcome of its own request. */
export function ended({ id, state, failure, checkpointCount }: SandboxRecord): SandboxError {
  if (state === "failed") {
    const message = `sandbox ${id} has failed${failure === null ? "" : `: ${failure.message}`}`;
    // Without a checkpoint, the reason's own hint applies.
    const hint = checkpointCount > 0 ? rescue(id) : undefined;
    return new SandboxError("sandbox_failed", { message, hint, details: { id, state, failure: failure?.reason } });
  }
  return new SandboxError("sandbox_destroyed", { message: `sandbox ${id} is ${state}`, details: { id, state } });
}

/** A failed sandbox does not change until its owner has copied the files. */
function rescue(id: string): string {
  const copy = `sandpiper cp "$(sandpiper fork ${id}):PATH" .`;
  return `copy files of its newest checkpoint: ${copy}; or return it to that checkpoint: sandpiper rollback ${id}`;
}

export function secretsNeedKey(): SandboxError {
  return new SandboxError("secrets_need_key", {
    message: "a sandbox token cannot change which secrets its sandbox uses",
  });
}
