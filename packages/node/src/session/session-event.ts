import { SandboxError } from "@sandpiper/core";
import type { SessionEvent, SessionStatus } from "@sandpiper/protocol";

export function statusUpdate(
  status: SessionStatus,
  fields: Omit<Extract<SessionEvent, { event: "status_update" }>, "event" | "status"> = {},
): SessionEvent {
  return { event: "status_update", status, ...fields };
}

/** Errors are texts here, so a text has to say all of it. */
export function errorText(thrown: unknown): string {
  const { message, hint } = SandboxError.from(thrown);
  return hint === undefined ? message : `${message} (${hint})`;
}
