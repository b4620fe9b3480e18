import { SandboxError } from "@sandpiper/core";
import { exitCodeOfSignal } from "../command/exit-code.ts";
import type { Interruption } from "../command/interruption.ts";
import type { OutputHandler } from "../run/run-command.ts";
import { isBrokenPipe } from "./print.ts";
import { writeFully } from "./write-fully.ts";

/** Hands a command's output on as it comes. When nobody reads it any more, the run is over. */
export function passThrough(interruption: Interruption): OutputHandler {
  return async (source, bytes) => {
    try {
      await writeFully(process[source], bytes);
    } catch (error) {
      if (isBrokenPipe(error)) return interruption.interrupt(exitCodeOfSignal("SIGPIPE"));
      throw new SandboxError("unavailable", {
        reason: "output_failed",
        message: `the command's ${source} could not be written: ${error instanceof Error ? error.message : error}`,
        hint: "the command was killed; see where its output goes",
        cause: error,
      });
    }
  };
}
