import { ByteCollector } from "@sandpiper/protocol";

/** The most that one JSON object should hold. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Collects a command's output until it ends, and drops what one object cannot hold. */
export class OutputCollector {
  readonly #collected = { stdout: new ByteCollector(), stderr: new ByteCollector() };
  #room = MAX_OUTPUT_BYTES;
  #isTruncated = false;

  /** Whether output is missing. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  readonly add = (source: "stdout" | "stderr", bytes: Uint8Array): void => {
    if (bytes.length > this.#room) this.#isTruncated = true;
    // A copy, because the memory of a chunk is reused.
    const kept = new Uint8Array(bytes.subarray(0, this.#room));
    this.#room -= kept.length;
    this.#collected[source].add(kept);
  };

  text(source: "stdout" | "stderr"): string {
    return this.#collected[source].text();
  }
}
