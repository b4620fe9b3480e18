import { constants } from "node:os";
import type { SandboxError } from "@sandpiper/protocol/error";

export const EXIT_TIMED_OUT = 124;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_NO_NODE = 3;
/** The reason of errors about a missing node. */
export const NO_NODE = "no_node";
/** Sandpiper itself failed, as opposed to the command it ran. */
const EXIT_TOOL_FAILED = 125;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NO_SUCH_PROGRAM = 127;

/** What a shell reports for a process that the signal ended. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export interface FailureOptions {
  /** The verb's exit code is otherwise that of the command it runs. */
  readonly endsLikeItsCommand: boolean;
}

/** The program ends like its command; a command that cannot be started gets a shell's exit code. */
export function exitCodeOfError(error: SandboxError, { endsLikeItsCommand }: FailureOptions): number {
  if (!endsLikeItsCommand) return exitCodeOfFailure(error);
  if (error.reason === "no_such_program") return EXIT_NO_SUCH_PROGRAM;
  if (error.reason === "not_executable") return EXIT_NOT_EXECUTABLE;
  if (error.reason === "out_of_memory") return exitCodeOfSignal("SIGKILL");
  return error.code === "invalid_argument" ? EXIT_USAGE : EXIT_TOOL_FAILED;
}

function exitCodeOfFailure({ code, reason }: SandboxError): number {
  if (reason === NO_NODE || reason === "node_unreachable") return EXIT_NO_NODE;
  return code === "invalid_argument" ? EXIT_USAGE : EXIT_FAILED;
}
