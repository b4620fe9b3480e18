export type OutputSource = "stdout" | "stderr" | "pty";

/** A piece of a process's output, in the order in which it was written. */
export interface OutputChunk {
  readonly source: OutputSource;
  readonly bytes: Uint8Array;
  /** Position of its first byte in all output of the process. */
  readonly offset: number;
  /** Bytes before `offset` that are gone because nobody read them in time. */
  readonly dropped: number;
}
