import type { ProcessExit } from "@sandpiper/sdk";
import { z } from "zod";
import type { OutputWindow } from "./output-window.ts";

/** The answer of a tool that ran a command to its end. */
export const commandFields = {
  sandbox_id: z.string(),
  exit_code: z.int().describe("128 + the signal's number when a signal ended it."),
  signal: z.string().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  duration_ms: z.number(),
  timed_out: z.boolean(),
  out_of_memory: z.boolean(),
  process_id: z.string().nullable().describe("Set if output was left out; read the rest with read_process_output."),
  left_out: z
    .object({ offset: z.int(), bytes: z.int() })
    .nullable()
    .describe("The range of the process's output that this answer leaves out."),
};

type CommandAnswer = z.infer<z.ZodObject<typeof commandFields>>;

export interface EndedCommand {
  readonly sandboxId: string;
  readonly processId: string;
  readonly window: OutputWindow;
  readonly exit: ProcessExit;
}

export function commandAnswer(ended: EndedCommand): { readonly text: string; readonly structured: CommandAnswer } {
  const { sandboxId, processId, window, exit } = ended;
  const leftOut = window.leftOut ?? null;
  const marker = leftOut === null ? "" : markerOf(leftOut, processId);
  const structured = {
    sandbox_id: sandboxId,
    exit_code: exit.exitCode,
    signal: exit.signal,
    stdout: window.text({ marker, source: "stdout" }),
    stderr: window.text({ marker, source: "stderr" }),
    duration_ms: exit.durationMs,
    timed_out: exit.timedOut,
    out_of_memory: exit.outOfMemory,
    process_id: leftOut === null ? null : processId,
    left_out: leftOut,
  };
  return {
    text: [endOf(exit), ...section("stdout", structured.stdout), ...section("stderr", structured.stderr)].join("\n"),
    structured,
  };
}

function markerOf({ offset, bytes }: { readonly offset: number; readonly bytes: number }, processId: string): string {
  return `\n[… ${bytes} bytes of output left out; continue with read_process_output, process_id "${processId}", offset ${offset} …]\n`;
}

function endOf({ exitCode, signal, timedOut, outOfMemory, durationMs }: ProcessExit): string {
  const seconds = `${(durationMs / 1000).toFixed(1)} s`;
  if (timedOut) {
    return `Killed after ${seconds}, its time limit. Give a larger timeout_seconds, or use start_process for long jobs.`;
  }
  if (outOfMemory) return `Killed: the sandbox is out of memory (exit code ${exitCode}).`;
  return signal === null
    ? `Exit code ${exitCode} after ${seconds}.`
    : `Ended by ${signal} (exit code ${exitCode}) after ${seconds}.`;
}

function section(name: string, text: string): string[] {
  return text === "" ? [] : [`${name}:`, text];
}
