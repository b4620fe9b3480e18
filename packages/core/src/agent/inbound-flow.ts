import { type OutputSource, SandboxError, type StreamChunk } from "@sandpiper/protocol";

export const DEFAULT_WINDOW_BYTES = 1024 * 1024;

export interface InboundFlowOptions {
  readonly windowBytes: number;
  /** Journal offset of the first byte; undefined for streams whose messages carry no offset. */
  readonly journalOffset: number | undefined;
  /** Gives the agent that much credit more. */
  readonly grant: (bytes: number) => void;
}

/** Holds the agent to its credit and to the order of its bytes; gives credit back as they are taken. */
export class InboundFlow {
  readonly #options: InboundFlowOptions;
  #credit: number;
  #taken = 0;
  #position: number;

  constructor(options: InboundFlowOptions) {
    this.#options = options;
    this.#credit = options.windowBytes;
    this.#position = options.journalOffset ?? 0;
  }

  /** Where the next byte belongs. */
  get position(): number {
    return this.#position;
  }

  /** The chunk a stream.data message holds, or what is wrong with it. */
  accept(params: Readonly<Record<string, unknown>>, bytes: Uint8Array): StreamChunk | SandboxError {
    this.#credit -= bytes.length;
    if (this.#credit < 0) return windowExceeded(-this.#credit);
    const dropped = this.#options.journalOffset === undefined ? 0 : droppedBytes(params, this.#position);
    if (dropped === undefined) return streamGap(this.#position, params["offset"]);
    const offset = this.#position + dropped;
    this.#position = offset + bytes.length;
    return { bytes, offset, source: outputSource(params["source"]), dropped };
  }

  /** Small returns are saved up, so that credit costs one message per half window. */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken * 2 < this.#options.windowBytes) return;
    this.#credit += this.#taken;
    this.#options.grant(this.#taken);
    this.#taken = 0;
  }
}

/** How many bytes the journal had dropped before this message; undefined when they are missing for no good reason. */
function droppedBytes(params: Readonly<Record<string, unknown>>, position: number): number | undefined {
  const offset = params["offset"];
  if (offset === position) return 0;
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(params["dropped"])) return undefined;
  const dropped = (offset as number) - position;
  return dropped > 0 ? dropped : undefined;
}

function outputSource(value: unknown): OutputSource | undefined {
  return value === "stdout" || value === "stderr" || value === "pty" ? value : undefined;
}

function windowExceeded(excessBytes: number): SandboxError {
  return new SandboxError("agent_window_exceeded", {
    message: `the agent sent ${excessBytes} bytes more than it was allowed to, so its channel was closed`,
    details: { excessBytes },
  });
}

function streamGap(expected: number, offset: unknown): SandboxError {
  return new SandboxError("stream_gap", {
    message: `bytes of a stream are missing: expected offset ${expected}, got ${String(offset)}`,
    details: { expected, offset },
  });
}
