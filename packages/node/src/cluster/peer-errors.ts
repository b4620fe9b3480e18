import { SandboxError } from "@sandpiper/core";

/** A sandbox's node does not answer. When it is gone, another takes its sandboxes over after the end of its lease. */
export function ownerUnreachable(url: string, cause?: unknown): SandboxError {
  return new SandboxError("unavailable", {
    reason: "owner_unreachable",
    message: `the node at ${url}, which holds the sandbox, does not answer`,
    hint: "try again: if it is gone, another node restores the sandbox when its lease has ended",
    details: { url },
    cause,
  });
}

/** A request came from the node that thought the sandbox was here: it has moved on in between, and nothing was done. */
export function movedOn(id: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "sandbox_moved",
    message: `the sandbox ${id} has just moved to another node`,
    hint: "try again",
    details: { id },
  });
}
