import { SandboxError } from "@sandpiper/protocol/error";
import { exitCodeOfError, type FailureOptions } from "./exit-code.ts";

export const KEY_HINT =
  "set SANDPIPER_API_KEY to a key of this node, or SANDPIPER_HOME to its home directory; nodes of a cluster share their keys, and the first key is in the file api-key in the home directory of the first node";

export interface ReportErrorOptions extends FailureOptions {
  readonly write?: (text: string) => void;
}

/** Prints the error and its hint on standard error, and returns the program's exit code. */
export function reportError(thrown: unknown, options: ReportErrorOptions): number {
  const { write = (text: string) => process.stderr.write(text) } = options;
  const error = SandboxError.from(thrown);
  // The node's own hint is about HTTP headers.
  const hint = error.code === "unauthenticated" ? KEY_HINT : error.hint;
  const lines = [`sandpiper: ${error.message}`, hint && `  ${hint.replaceAll("\n", "\n  ")}`];
  if (error.code === "internal" && thrown instanceof Error) lines.push(thrown.stack);
  write(`${lines.filter(Boolean).join("\n")}\n`);
  return exitCodeOfError(error, options);
}
