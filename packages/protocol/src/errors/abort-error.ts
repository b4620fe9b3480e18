import { SandboxError } from "./sandbox-error.ts";

/** What a canceled operation rejects with: the signal's own SandboxError, or `canceled` with its reason as the cause. */
export function abortError(signal: AbortSignal, what: string): SandboxError {
  if (signal.reason instanceof SandboxError) return signal.reason;
  return new SandboxError("canceled", {
    reason: "aborted",
    message: `${what} was canceled by its caller`,
    cause: signal.reason,
  });
}
