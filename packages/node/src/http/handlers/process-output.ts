import { type ProcessHandle, SandboxError } from "@sandpiper/core";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";

export interface ProcessOutputOptions {
  readonly live: LiveSandbox;
  /** Attached at `from`. */
  readonly process: ProcessHandle;
  readonly from: number;
  /** Undefined follows the process to its end. */
  readonly to: number | undefined;
  readonly source: "stdout" | "stderr" | "all";
  readonly signal: AbortSignal;
}

/** Streams a process's output. Plain bytes cannot show a gap, so a gap is an error. */
export async function* processOutput(options: ProcessOutputOptions): AsyncGenerator<Uint8Array, void, undefined> {
  const { live, process, from, to = Number.POSITIVE_INFINITY, source, signal } = options;
  if (from >= to) return;
  using _ = live.hold("client");
  signal.addEventListener("abort", () => process.detach(), { once: true });
  for await (const chunk of process.output) {
    if (chunk.dropped > 0) throw droppedOutput(process.id, chunk.dropped);
    live.touch("output");
    const bytes = chunk.bytes.subarray(0, to - chunk.offset);
    // A terminal's output counts as stdout.
    const isWanted = source === "all" || (chunk.source === "stderr") === (source === "stderr");
    if (isWanted) yield bytes;
    if (chunk.offset + chunk.bytes.length >= to) return;
  }
}

function droppedOutput(process: string, dropped: number): SandboxError {
  return new SandboxError("output_dropped", {
    message: `${dropped} bytes of the output of process ${process} were dropped before they were read`,
  });
}
