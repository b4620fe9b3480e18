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
export function ended({ id, state, failure }: SandboxRecord): SandboxError {
  if (state === "failed") {
    const message = `sandbox ${id} has failed${failure === null ? "" : `: ${failure.message}`}`;
    return new SandboxError("sandbox_failed", { message, details: { id, state, failure: failure?.reason } });
  }
  return new SandboxError("sandbox_destroyed", { message: `sandbox ${id} is ${state}`, details: { id, state } });
}
