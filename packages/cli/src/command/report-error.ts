import { SandboxError } from "@sandpiper/core";
import { KEY_HINT } from "../target/no-node-error.ts";
import { exitCodeOfError, type FailureOptions } from "./exit-code.ts";

export interface ReportErrorOptions extends FailureOptions {
  readonly write?: (text: string) => void;
}

/** Says on standard error what went wrong and what to do, and returns the program's exit code. */
export function reportError(thrown: unknown, options: ReportErrorOptions): number {
  const { write = (text: string) => process.stderr.write(text) } = options;
  const error = SandboxError.from(thrown);
  const isOurFault = error.code === "internal";
  // The node's own hint is for those who write requests.
  const hint = error.code === "unauthenticated" ? KEY_HINT : error.hint;
  const lines = [`sandpiper: ${error.message}`, hint && `  ${hint.replaceAll("\n", "\n  ")}`];
  if (isOurFault && thrown instanceof Error) lines.push(thrown.stack);
  write(`${lines.filter(Boolean).join("\n")}\n`);
  return exitCodeOfError(error, options);
}
