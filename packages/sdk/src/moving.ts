import type { SandboxError } from "@sandpiper/protocol";

const REASONS: readonly string[] = [
  "restoring",
  "handoff_under_way",
  "owner_unreachable",
  "sandbox_moved",
  "sandbox_stopped",
];

/** The sandbox is between two nodes, or its node is being replaced: asked again a little later, it is there. */
export function isMoving({ code, reason }: SandboxError): boolean {
  return code === "unavailable" && REASONS.includes(reason);
}

/** Where the sandbox was looked for it is not any more: nothing was begun, so whatever was asked may be asked again. */
export function wasNotBegun({ code, reason }: SandboxError): boolean {
  return code === "unavailable" && reason === "sandbox_moved";
}

/** Somebody has paused it. Who was reading from it before waits a while for it to be resumed. */
export function isPaused({ reason }: SandboxError): boolean {
  return reason === "sandbox_paused";
}
