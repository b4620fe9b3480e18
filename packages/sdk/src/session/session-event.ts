import { type ErrorReason, errorReasons, isErrorReason, SandboxError, type SessionEvent } from "@sandpiper/protocol";

export type StatusEvent = Extract<SessionEvent, { event: "status_update" }>;
export type OutputEvent = Extract<SessionEvent, { event: "stdout" | "stderr" }>;

/** Undefined for an invalid message. Only the kind is checked, because a newer node may add fields. */
export function parseSessionEvent(data: unknown): SessionEvent | undefined {
  try {
    const event: unknown = typeof data === "string" ? JSON.parse(data) : undefined;
    const isEvent = typeof event === "object" && event !== null && "event" in event;
    return isEvent ? (event as SessionEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** The error of an event. A newer node may give a reason that this version does not know. */
export function errorOfEvent(
  { message, reason }: { readonly message?: string | undefined; readonly reason?: string | undefined },
  fallback: ErrorReason,
): SandboxError {
  const { code } = errorReasons[reason !== undefined && isErrorReason(reason) ? reason : fallback];
  return SandboxError.fromFields({ code, reason: reason ?? fallback, message: message ?? reason ?? fallback });
}
