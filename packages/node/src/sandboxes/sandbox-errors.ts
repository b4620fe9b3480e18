import { SandboxError } from "@sandpiper/core";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export function notReady({ id, state, provider }: SandboxRecord): SandboxError {
  const details = { id, state };
  if (state === "paused") {
    return new SandboxError("failed_precondition", {
      reason: "sandbox_paused",
      message: `sandbox ${id} is paused`,
      hint: "resume it",
      details,
    });
  }
  if (state === "ready") {
    return new SandboxError("unavailable", {
      reason: "not_found_yet",
      message: `sandbox ${id} cannot be reached yet: provider ${provider} has not reported its instance`,
      hint: "retry in a moment; the node's log shows whether the provider answers",
      details,
    });
  }
  return new SandboxError("failed_precondition", {
    reason: "not_ready",
    message: `sandbox ${id} is ${state}`,
    hint: "wait until its state is ready",
    details,
  });
}

export function beingDestroyed({ id, state }: SandboxRecord): SandboxError {
  return new SandboxError("gone", {
    reason: "sandbox_destroyed",
    message: `sandbox ${id} is being destroyed`,
    hint: "create a new one",
    details: { id, state },
  });
}

export function ended({ id, state, failure }: SandboxRecord): SandboxError {
  return new SandboxError("gone", {
    reason: failure?.reason ?? "sandbox_destroyed",
    message: `sandbox ${id} is ${state}${failure === null ? "" : `: ${failure.message}`}`,
    hint: "create a new one",
    details: { id, state },
  });
}
