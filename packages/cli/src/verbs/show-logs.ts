import type { ProcessResource } from "@sandpiper/sdk";
import type { Interruption } from "../command/interruption.ts";
import { passThrough } from "../output/pass-through.ts";
import { printJson } from "../output/show.ts";
import { OutputCollector } from "../run/output-collector.ts";

export interface LogChunk {
  readonly source: string;
  readonly bytes: Uint8Array;
  /** Of its first byte. */
  readonly offset: number;
}

export interface ShowLogsOptions {
  readonly isFollowed: boolean;
  readonly isJson: boolean;
  readonly interruption: Interruption;
}

/** Shows what a process wrote, up to now or to its end. */
export async function showLogs(
  process_: ProcessResource,
  output: AsyncIterable<LogChunk>,
  { isFollowed, isJson, interruption }: ShowLogsOptions,
): Promise<void> {
  const chunks = isFollowed ? output : until(process_, output);
  if (!isJson) {
    const write = passThrough(interruption);
    for await (const { source, bytes } of chunks) {
      await write(streamOf(source), bytes);
      if (interruption.exitCode !== undefined) return;
    }
  } else if (isFollowed) await printPieces(chunks, interruption);
  else await printWhole(process_, chunks);
}

/** What was written before now; a process that runs may write for ever. */
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
  const collector = new OutputCollector();
  for await (const { source, bytes } of chunks) collector.add(streamOf(source), bytes);
  const { id, isRunning, exitCode, signal } = process_;
  const [stdout, stderr] = [collector.text("stdout"), collector.text("stderr")];
  await printJson({ process: id, isRunning, exitCode, signal, stdout, stderr });
}

async function printPieces(chunks: AsyncIterable<LogChunk>, interruption: Interruption): Promise<void> {
  const write = passThrough(interruption);
  // A character may lie across two pieces.
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { source, bytes, offset } of chunks) {
    const stream = streamOf(source);
    const text = decoders[stream].decode(bytes, { stream: true });
    await write("stdout", Buffer.from(`${JSON.stringify({ offset, source: stream, text })}\n`));
    if (interruption.exitCode !== undefined) return;
  }
}

function streamOf(source: string): "stdout" | "stderr" {
  return source === "stderr" ? "stderr" : "stdout";
}
