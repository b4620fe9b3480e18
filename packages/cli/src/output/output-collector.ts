import { SandboxError } from "@sandpiper/protocol/error";

/** The most that one JSON object should hold. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

interface Collected {
  buffer: Buffer;
  sizeBytes: number;
}

/** Collects a command's output until it ends. */
export class OutputCollector {
  readonly #collected: Record<"stdout" | "stderr", Collected> = { stdout: emptyCollected(), stderr: emptyCollected() };

  readonly add = (source: "stdout" | "stderr", bytes: Uint8Array): void => {
    const { stdout, stderr } = this.#collected;
    if (stdout.sizeBytes + stderr.sizeBytes + bytes.length > MAX_OUTPUT_BYTES) throw outputTooLong();
    const collected = this.#collected[source];
    const neededBytes = collected.sizeBytes + bytes.length;
    if (neededBytes > collected.buffer.length) {
      // One growing buffer, since output may come in millions of tiny chunks.
      const grown = Buffer.allocUnsafe(Math.max(2 * collected.buffer.length, neededBytes));
      collected.buffer.copy(grown, 0, 0, collected.sizeBytes);
      collected.buffer = grown;
    }
    collected.buffer.set(bytes, collected.sizeBytes);
    collected.sizeBytes = neededBytes;
  };

  /** Decoded as a whole, since a character may lie across two chunks. */
  text(source: "stdout" | "stderr"): string {
    const { buffer, sizeBytes } = this.#collected[source];
    return buffer.toString("utf8", 0, sizeBytes);
  }
}

function emptyCollected(): Collected {
  return { buffer: Buffer.alloc(4096), sizeBytes: 0 };
}

function outputTooLong(): SandboxError {
  return new SandboxError("output_too_long", {
    message: `the command wrote more than ${MAX_OUTPUT_BYTES / 1024 / 1024} MiB, the limit of --json`,
  });
}
