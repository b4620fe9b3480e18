import { constants } from "node:os";
import type { SandboxError } from "@sandpiper/core";

export const EXIT_TIMED_OUT = 124;
const EXIT_USAGE = 2;
/** Sandpiper itself failed, as opposed to the command it ran. */
const EXIT_TOOL_FAILED = 125;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NO_SUCH_PROGRAM = 127;

/** What a shell reports for a process that the signal ended. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** A command ends with its own exit code; one that cannot be started ends as a shell would have it. */
export function exitCodeOfError(error: SandboxError): number {
  if (error.reason === "no_such_program") return EXIT_NO_SUCH_PROGRAM;
  if (error.reason === "not_executable") return EXIT_NOT_EXECUTABLE;
  if (error.reason === "out_of_memory") return exitCodeOfSignal("SIGKILL");
  return error.code === "invalid_argument" ? EXIT_USAGE : EXIT_TOOL_FAILED;
}
