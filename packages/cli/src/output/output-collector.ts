import { SandboxError } from "@sandpiper/core";

/** The most that one JSON object should hold. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Collects a command's output until it ends. */
export class OutputCollector {
  // Growing buffers, since output may come in millions of tiny chunks.
  readonly #buffers = { stdout: growingBuffer(), stderr: growingBuffer() };

  readonly add = (source: "stdout" | "stderr", bytes: Uint8Array): void => {
    const { stdout, stderr } = this.#buffers;
    if (stdout.byteLength + stderr.byteLength + bytes.length > MAX_OUTPUT_BYTES) throw outputTooLong();
    const buffer = this.#buffers[source];
    const start = buffer.byteLength;
    buffer.resize(start + bytes.length);
    new Uint8Array(buffer, start).set(bytes);
  };

  /** Decoded as a whole, since a character may lie across two chunks. */
  text(source: "stdout" | "stderr"): string {
    return Buffer.from(this.#buffers[source].slice()).toString("utf8");
  }
}

/** Reserves address space; memory is used as it grows. */
function growingBuffer(): ArrayBuffer {
  return new ArrayBuffer(0, { maxByteLength: MAX_OUTPUT_BYTES });
}

function outputTooLong(): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "output_too_long",
    message: `the command wrote more than ${MAX_OUTPUT_BYTES / 1024 / 1024} MiB, the limit of --json`,
    hint: "run it without --json, which streams output of any size",
  });
}
