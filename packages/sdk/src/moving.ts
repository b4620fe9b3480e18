import type { SandboxError } from "@sandpiper/protocol";

const REASONS: readonly string[] = [
  "restoring",
  "handoff_under_way",
  "owner_unreachable",
  "sandbox_moved",
  "sandbox_stopped",
];

/** The sandbox is moving, or its node is being replaced: a retry succeeds later. */
export function isMoving({ code, reason }: SandboxError): boolean {
  return code === "unavailable" && REASONS.includes(reason);
}

/** The node no longer has the sandbox and did not begin the operation, so any request may be repeated. */
export function wasNotBegun({ code, reason }: SandboxError): boolean {
  return code === "unavailable" && reason === "sandbox_moved";
}

/** The sandbox was paused. An open stream waits some time for a resume. */
export function isPaused({ reason }: SandboxError): boolean {
  return reason === "sandbox_paused";
}
