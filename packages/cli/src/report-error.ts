import { SandboxError } from "@sandpiper/core";
import { exitCodeOfError } from "./exit-code.ts";

/** Says on standard error what went wrong and what to do, and returns the program's exit code. */
export function reportError(thrown: unknown, write = (text: string) => process.stderr.write(text)): number {
  const error = SandboxError.from(thrown);
  const isOurFault = error.code === "internal";
  const lines = [`sandpiper: ${error.message}`, error.hint && `  ${error.hint}`];
  if (isOurFault && thrown instanceof Error) lines.push(thrown.stack);
  write(`${lines.filter(Boolean).join("\n")}\n`);
  return exitCodeOfError(error);
}
