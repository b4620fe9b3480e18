import { SandboxError } from "@sandpiper/core";

/** For a write whose response was lost and whose object is not found: it may have been replaced, or may still take effect. */
export function unknownOutcome(key: string, label: string, cause: unknown): SandboxError {
  return new SandboxError("outcome_unknown", {
    message: `cannot tell whether ${key} was written to the store ${label}`,
    cause,
  });
}
