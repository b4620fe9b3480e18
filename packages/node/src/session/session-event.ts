import { SandboxError } from "@sandpiper/core";
import type { SessionEvent, SessionStatus } from "@sandpiper/protocol";

export function statusUpdate(
  status: SessionStatus,
  fields: Omit<Extract<SessionEvent, { event: "status_update" }>, "event" | "status"> = {},
): SessionEvent {
  return { event: "status_update", status, ...fields };
}

/** Includes the hint, because an error of this protocol is only a text. */
export function errorText(thrown: unknown): string {
  const { message, hint } = SandboxError.from(thrown);
  return hint === undefined ? message : `${message} (${hint})`;
}
