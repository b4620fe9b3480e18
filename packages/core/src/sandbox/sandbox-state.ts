import { SandboxError, type SandboxId, type SandboxResource } from "@sandpiper/protocol";

export type SandboxState = SandboxResource["state"];

/** The life cycle of a sandbox: all allowed transitions. */
export const sandboxTransitions: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  creating: ["ready", "failed", "destroyed"],
  ready: ["paused", "checkpointing", "stopped", "failed", "destroyed"],
  paused: ["ready", "failed", "destroyed"],
  checkpointing: ["ready", "stopped", "failed", "destroyed"],
  stopped: ["restoring", "failed", "destroyed"],
  restoring: ["ready", "failed", "destroyed"],
  failed: ["destroyed"],
  destroyed: [],
};

export function canTransition(from: SandboxState, to: SandboxState): boolean {
  return sandboxTransitions[from].includes(to);
}

/** Returns `to`, or throws if the transition is not allowed. */
export function transition(id: SandboxId, from: SandboxState, to: SandboxState): SandboxState {
  if (canTransition(from, to)) return to;
  const allowed = sandboxTransitions[from];
  throw new SandboxError("illegal_transition", {
    message: `sandbox ${id} cannot go from ${from} to ${to}`,
    hint: allowed.length === 0 ? `${from} is final` : `from ${from} it can become ${allowed.join(", ")}`,
    details: { from, to, allowed },
  });
}

/** Operations on a sandbox need it ready. */
export function requireReady(id: SandboxId, actual: SandboxState, cause?: SandboxError): void {
  if (actual === "ready") return;
  if (actual === "checkpointing" || actual === "stopped") {
    throw new SandboxError("sandbox_stopped", {
      message: `sandbox ${id} is being saved, or was stopped`,
      details: { expected: "ready", actual },
    });
  }
  throw new SandboxError("invalid_state", {
    message: `sandbox ${id} is ${actual}, not ready${cause === undefined ? "" : `: ${cause.message}`}`,
    hint:
      cause?.hint ??
      (actual === "failed" || actual === "destroyed" ? "create a new sandbox" : "wait until it is ready"),
    details: { expected: "ready", actual },
    cause,
  });
}
