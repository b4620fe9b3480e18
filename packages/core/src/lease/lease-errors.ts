import type { SandboxId } from "@sandpiper/protocol";
import { SandboxError } from "../sandbox-error.ts";

export function leaseLost(id: SandboxId, epoch: number, cause?: unknown): SandboxError {
  return new SandboxError("conflict", {
    reason: "lease_lost",
    message: `this node no longer holds the lease of sandbox ${id} with epoch ${epoch}`,
    hint: "another node may run the sandbox now; ask for it again",
    details: { epoch },
    cause,
  });
}

export function isLeaseLost(thrown: unknown): boolean {
  return thrown instanceof SandboxError && thrown.reason === "lease_lost";
}

export function sandboxInUse(id: SandboxId): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "sandbox_in_use",
    message: `sandbox ${id} has a client attached on another node`,
    hint: "ask to take it over, or come back when that client has left",
  });
}

export function handoffUnderWay(id: SandboxId, node: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "handoff_under_way",
    message: `sandbox ${id} is being moved to node ${node}`,
    hint: "retry in a moment",
    details: { node },
  });
}

export function handoffTimeout(id: SandboxId, patienceMs: number, cause?: unknown): SandboxError {
  return new SandboxError("deadline_exceeded", {
    reason: "handoff_timeout",
    message: `sandbox ${id} was not given up by its owner within ${patienceMs} ms`,
    hint: "retry; if it goes on, see whether its owner can save it",
    cause,
  });
}

export function sandboxDestroyed(id: SandboxId): SandboxError {
  return new SandboxError("gone", {
    reason: "sandbox_destroyed",
    message: `sandbox ${id} was destroyed while its lease was waited for`,
  });
}
