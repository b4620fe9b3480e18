import { SandboxError } from "@sandpiper/core";
import type { SessionEvent, SessionStatus } from "@sandpiper/protocol";

type StatusFields = Omit<Extract<SessionEvent, { event: "status_update" }>, "event" | "status">;

export function statusUpdate(status: SessionStatus, fields: StatusFields = {}): SessionEvent {
  return { event: "status_update", status, ...fields };
}

/** The status of code that was not run, or did not run to its end. */
export function refused(error: SandboxError, execution?: string): SessionEvent {
  return statusUpdate("SANDBOX_EXECUTION_ERROR", { ...errorFields(error), execution });
}

/** Includes the hint, because clients without a library show only the text. */
export function errorFields(thrown: unknown): { readonly message: string; readonly reason: string } {
  const { message, hint, reason } = SandboxError.from(thrown);
  return { message: hint === undefined ? message : `${message} (${hint})`, reason };
}
