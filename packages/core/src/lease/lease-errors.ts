import { SandboxError, type SandboxId } from "@sandpiper/protocol";

export function leaseLost(id: SandboxId, epoch: number, cause?: unknown): SandboxError {
  return new SandboxError("lease_lost", {
    message: `this node no longer holds the lease of sandbox ${id} with epoch ${epoch}`,
    details: { epoch },
    cause,
  });
}

/** The lock of a sandbox records a newer state than the store has. */
export function stateReplayed(
  id: SandboxId,
  { key, store }: { readonly key: string; readonly store: string },
): SandboxError {
  return new SandboxError("object_replayed", {
    message: `${key} in ${store} is older than the state of sandbox ${id} that its lock records; this node ignores it`,
    details: { key, store },
  });
}

export function isLeaseLost(thrown: unknown): boolean {
  return thrown instanceof SandboxError && thrown.reason === "lease_lost";
}

export function sandboxInUse(id: SandboxId): SandboxError {
  return new SandboxError("sandbox_in_use", { message: `sandbox ${id} has an attached client on another node` });
}

export function handoffUnderWay(id: SandboxId, node: string): SandboxError {
  return new SandboxError("handoff_under_way", {
    message: `sandbox ${id} is being moved to node ${node}`,
    details: { node },
  });
}

export function handoffTimeout(id: SandboxId, patienceMs: number, cause?: unknown): SandboxError {
  return new SandboxError("handoff_timeout", {
    message: `sandbox ${id} was not released by its owner within ${patienceMs} ms`,
    cause,
  });
}

export function sandboxDestroyed(id: SandboxId): SandboxError {
  return new SandboxError("sandbox_destroyed", {
    message: `sandbox ${id} was destroyed during the wait for its lease`,
  });
}
