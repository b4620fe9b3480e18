import { ByteCollector, SandboxError } from "@sandpiper/protocol";

/** The most that one JSON object should hold. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Collects a command's output until it ends. */
export class OutputCollector {
  readonly #collected = { stdout: new ByteCollector(), stderr: new ByteCollector() };

  readonly add = (source: "stdout" | "stderr", bytes: Uint8Array): void => {
    const { stdout, stderr } = this.#collected;
    if (stdout.byteLength + stderr.byteLength + bytes.length > MAX_OUTPUT_BYTES) throw outputTooLong();
    // A copy, because the memory of a chunk is reused.
    this.#collected[source].add(new Uint8Array(bytes));
  };

  text(source: "stdout" | "stderr"): string {
    return this.#collected[source].text();
  }
}

function outputTooLong(): SandboxError {
  return new SandboxError("output_too_long", {
    message: `the command wrote more than ${MAX_OUTPUT_BYTES / 1024 / 1024} MiB, the limit of --json`,
  });
}
