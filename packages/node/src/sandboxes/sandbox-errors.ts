import { SandboxError } from "@sandpiper/core";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export function notReady(record: SandboxRecord): SandboxError {
  if (record.state === "paused") {
    return new SandboxError("failed_precondition", {
      reason: "sandbox_paused",
      message: `sandbox ${record.id} is paused`,
      hint: "resume it",
      details: { id: record.id, state: record.state },
    });
  }
  if (record.state === "ready") {
    return new SandboxError("unavailable", {
      reason: "not_found_yet",
      message: `sandbox ${record.id} cannot be reached right now: provider ${record.provider} has not told of it`,
      hint: "ask again a little later; the node's log says whether the provider answers",
      details: { id: record.id, state: record.state },
    });
  }
  return new SandboxError("failed_precondition", {
    reason: "not_ready",
    message: `sandbox ${record.id} is ${record.state}`,
    hint: "wait until its state is ready",
    details: { id: record.id, state: record.state },
  });
}

export function ending(record: SandboxRecord): SandboxError {
  return new SandboxError("gone", {
    reason: "sandbox_destroyed",
    message: `sandbox ${record.id} is being destroyed`,
    hint: "create a new one",
    details: { id: record.id, state: record.state },
  });
}

export function ended(record: SandboxRecord): SandboxError {
  return new SandboxError("gone", {
    reason: record.failure?.reason ?? "sandbox_destroyed",
    message: `sandbox ${record.id} is ${record.state}${record.failure === null ? "" : `: ${record.failure.message}`}`,
    hint: "create a new one",
    details: { id: record.id, state: record.state },
  });
}
