import { type OutputSource, SandboxError, type StreamChunk } from "@sandpiper/protocol";

export const DEFAULT_WINDOW_BYTES = 1024 * 1024;

export interface InboundFlowOptions {
  readonly windowBytes: number;
  /** Journal offset of the first byte; undefined for streams whose messages carry no offset. */
  readonly journalOffset: number | undefined;
  /** Grants the agent more credit. */
  readonly grant: (bytes: number) => void;
}

/** Enforces the agent's credit and the order of its bytes; grants new credit as bytes are consumed. */
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

  /** The offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  /** The chunk of a stream.data message, or its error. */
  accept(params: Readonly<Record<string, unknown>>, bytes: Uint8Array): StreamChunk | SandboxError {
    this.#credit -= bytes.length;
    if (this.#credit < 0) return windowExceeded(-this.#credit);
    const dropped = this.#options.journalOffset === undefined ? 0 : droppedBytes(params, this.#position);
    if (dropped === undefined) return streamGap(this.#position, params["offset"]);
    const offset = this.#position + dropped;
    this.#position = offset + bytes.length;
    return { bytes, offset, source: outputSource(params["source"]), dropped };
  }

  /** Credit is granted in one message per half window. */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken * 2 < this.#options.windowBytes) return;
    this.#credit += this.#taken;
    this.#options.grant(this.#taken);
    this.#taken = 0;
  }
}

/** How many bytes the journal dropped before this message; undefined if bytes are missing without a drop. */
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
