import { SandboxError } from "@sandpiper/core";

/** The command line is wrong; the program ends with exit code 2. */
export function usageError(message: string, hint: string): SandboxError {
  return new SandboxError("invalid_argument", { reason: "usage", message, hint });
}
