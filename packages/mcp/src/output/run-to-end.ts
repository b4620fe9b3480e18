import type { CommandOptions, Process, Program, Sandbox } from "@sandpiper/sdk";
import type { ToolCall } from "../tool/tool.ts";
import type { EndedCommand } from "./command-fields.ts";
import { OutputWindow } from "./output-window.ts";
import { tick } from "./ticking.ts";

/** Enough to read output that the answer left out, and small compared to a sandbox's disk. */
const JOURNAL_BYTES = 8 * 1024 * 1024;

export interface RunOptions extends CommandOptions {
  readonly stdin?: string | undefined;
}

/**
 * Runs a program to its end. Output that does not fit into the answer stays readable. An abort kills the command and its
 * descendants.
 */
export async function runToEnd(
  sandbox: Sandbox,
  program: Program,
  { options: { stdin, ...options }, call }: { readonly options: RunOptions; readonly call: ToolCall },
): Promise<EndedCommand> {
  const { session, signal } = call;
  const start = { ...options, stdin: stdin !== undefined, journalBytes: JOURNAL_BYTES, signal };
  const process =
    typeof program === "object" && "code" in program
      ? await sandbox.startCode(program.code, { ...start, language: program.language })
      : await sandbox.start(program, start);
  let isKept = false;
  try {
    if (stdin !== undefined) feed(process, stdin);
    const window = new OutputWindow(session.limits.outputBytes);
    await readAll(process, window, call);
    const exit = await process.wait({ signal });
    isKept = window.leftOut !== undefined;
    return { sandboxId: sandbox.id, processId: process.id, window, exit };
  } finally {
    if (isKept) session.commands.add(sandbox.id, process);
    else await process[Symbol.asyncDispose]();
  }
}

/** A command may end without reading its input. */
function feed(process: Process, stdin: string): void {
  process.write(stdin).catch(() => {});
  process.closeStdin().catch(() => {});
}

async function readAll(process: Process, window: OutputWindow, call: ToolCall): Promise<void> {
  const { signal } = call;
  const stop = () => process.detach();
  signal.addEventListener("abort", stop, { once: true });
  using _ = tick(call, (seconds) => `running for ${seconds} s, ${window.endOffset} bytes of output`);
  try {
    for await (const chunk of process.output) window.add(chunk);
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
