export type OutputSource = "stdout" | "stderr" | "pty";

/** A piece of a stream, in the order in which it was written. */
export interface StreamChunk<Source = OutputSource | undefined> {
  readonly bytes: Uint8Array;
  /** Position of its first byte: in the journal for output, otherwise from the start of the stream. */
  readonly offset: number;
  /** Undefined where the stream is not the output of a process. */
  readonly source: Source;
  /** Bytes before `offset` that were dropped because they were not read in time. */
  readonly dropped: number;
}

/** A piece of the output of a process. */
export type OutputChunk = StreamChunk<OutputSource>;

/** The bytes of the chunks whose source is wanted. */
export async function* bytesOf(
  output: AsyncIterable<OutputChunk>,
  isWanted: (source: OutputSource) => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of output) if (isWanted(chunk.source)) yield chunk.bytes;
}
