import { type ProcessResource, type Sandbox, SandboxError } from "@sandpiper/sdk";
import { z } from "zod";

/** A process in the answers of tools. */
export const processFields = {
  process_id: z.string(),
  pid: z.int(),
  command: z.string(),
  is_running: z.boolean(),
  exit_code: z.int().nullable().describe("Null while it runs."),
  signal: z.string().nullable().describe("The signal that ended it, if any."),
  started_at: z.string(),
  output_bytes: z.int().describe("The number of bytes written so far, which is the offset of the next byte."),
};

export function processRow(process: ProcessResource): z.infer<z.ZodObject<typeof processFields>> {
  return {
    process_id: process.id,
    pid: process.pid,
    command: commandOf(process.argv),
    is_running: process.isRunning,
    exit_code: process.exitCode,
    signal: process.signal,
    started_at: process.startedAt,
    output_bytes: process.endOffset,
  };
}

/** The state of a process in words. */
export function processState({ isRunning, exitCode, signal }: ProcessResource): string {
  if (isRunning) return "runs";
  return signal === null ? `has ended with exit code ${exitCode}` : `was ended by ${signal}`;
}

/** Returns the current state of a process. The error for an unknown id lists the known ones. */
export async function findProcess(sandbox: Sandbox, id: string, signal: AbortSignal): Promise<ProcessResource> {
  const processes = await sandbox.processes({ signal });
  const found = processes.find((process) => process.id === id);
  if (found !== undefined) return found;
  const known = processes.map((process) => process.id).join(", ");
  throw new SandboxError("no_such_process", {
    message: `sandbox ${sandbox.id} has no process ${id}`,
    hint: known === "" ? "it has no processes; start one with start_process" : `its processes: ${known}`,
  });
}

/** A shell command is shown as it was written. */
function commandOf(argv: readonly string[]): string {
  const isShell = argv.length === 3 && argv[0] === "/bin/sh" && argv[1] === "-c";
  return isShell ? (argv[2] ?? "") : argv.join(" ");
}
