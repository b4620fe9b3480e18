import type { ProcessResource } from "@sandpiper/sdk";
import { Interruption } from "../command/interruption.ts";
import type { Verb } from "../command/verb.ts";
import { followOption } from "../options/shared-options.ts";
import { passThrough, printJson } from "../output/print.ts";
import { newestProcess, pickProcess } from "../target/find-process.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const logsVerb: Verb = {
  name: "logs",
  summary: "show the output of a process",
  operands: ["SANDBOX", "[PROCESS]"],
  options: [
    { ...followOption, summary: "keep printing new output until the process ends" },
    { name: "json", summary: "print a JSON object, or with --follow one per piece of output" },
  ],
  details: `PROCESS is an ID, the beginning of an ID, or a PID from "sandpiper ps SANDBOX"; the default is the newest process.
Standard error goes to standard error. Ctrl-C ends --follow, not the process.`,
  examples: ["sandpiper logs build", "sandpiper logs --follow build 3f2a"],
  async run(arguments_) {
    using interruption = new Interruption();
    const sandbox = await firstSandbox(arguments_);
    const processName = arguments_.operands[1];
    const known = await sandbox.processes();
    const chosen = processName === undefined ? newestProcess(sandbox, known) : pickProcess(processName, known);
    const process_ = await sandbox.attach(chosen.id, { offset: chosen.startOffset });
    interruption.signal.addEventListener("abort", () => process_.detach());
    const options = { isFollowed: arguments_.has("follow"), isJson: arguments_.has("json"), interruption };
    const exitCode = await interruption.exitCodeOf(() => showLogs(chosen, process_.output, options));
    process_.detach();
    return exitCode;
  },
};

export interface LogChunk {
  readonly source: string;
  readonly bytes: Uint8Array;
  /** Of its first byte. */
  readonly offset: number;
}

interface ShowLogsOptions {
  readonly isFollowed: boolean;
  readonly isJson: boolean;
  readonly interruption: Interruption;
}

async function showLogs(
  process_: ProcessResource,
  output: AsyncIterable<LogChunk>,
  { isFollowed, isJson, interruption }: ShowLogsOptions,
): Promise<void> {
  const chunks = isFollowed ? output : until(process_, output);
  if (isJson && !isFollowed) return printWhole(process_, chunks);
  const write = passThrough(interruption);
  // A character may lie across two chunks.
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { source, bytes, offset } of chunks) {
    const stream = streamOf(source);
    if (isJson) {
      const text = decoders[stream].decode(bytes, { stream: true });
      await write("stdout", Buffer.from(`${JSON.stringify({ offset, source: stream, text })}\n`));
    } else await write(stream, bytes);
    if (interruption.exitCode !== undefined) return;
  }
}

/** The output up to now; a running process may write forever. */
export async function* until(
  { startOffset, endOffset }: Pick<ProcessResource, "startOffset" | "endOffset">,
  output: AsyncIterable<LogChunk>,
): AsyncGenerator<LogChunk> {
  if (startOffset === endOffset) return;
  for await (const chunk of output) {
    const wantedBytes = endOffset - chunk.offset;
    if (wantedBytes > 0) yield { ...chunk, bytes: chunk.bytes.subarray(0, wantedBytes) };
    if (chunk.bytes.length >= wantedBytes) return;
  }
}

async function printWhole(process_: ProcessResource, chunks: AsyncIterable<LogChunk>): Promise<void> {
  const { OutputCollector } = await import("../output/output-collector.ts");
  const collector = new OutputCollector();
  for await (const { source, bytes } of chunks) collector.add(streamOf(source), bytes);
  const { id, isRunning, exitCode, signal } = process_;
  const [stdout, stderr] = [collector.text("stdout"), collector.text("stderr")];
  await printJson({ process: id, isRunning, exitCode, signal, stdout, stderr });
}

function streamOf(source: string): "stdout" | "stderr" {
  return source === "stderr" ? "stderr" : "stdout";
}
