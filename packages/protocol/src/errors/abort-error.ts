import { SandboxError } from "./sandbox-error.ts";

/** The error of a canceled operation: the signal's own SandboxError, or `canceled` with the signal's reason as cause. */
export function abortError(signal: AbortSignal, what: string): SandboxError {
  if (SandboxError.is(signal.reason)) return signal.reason;
  return new SandboxError("aborted", { message: `the caller canceled ${what}`, cause: signal.reason });
}
