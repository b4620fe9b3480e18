import type { StreamChunk } from "../agent/chunk-queue.ts";
import { ByteCollector } from "../byte-collector.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { ExecResult } from "./exec.ts";
import type { ProcessExit } from "./process-exit.ts";

export const DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface ExecOutputOptions {
  /** Output beyond this is read and thrown away, and the result says so; stdout and stderr together. */
  readonly maxOutputBytes?: number | undefined;
  /** Called as output arrives, also with what the result does not keep. */
  readonly onStdout?: ((bytes: Uint8Array) => void) | undefined;
  readonly onStderr?: ((bytes: Uint8Array) => void) | undefined;
}

/** Gathers the output of one command. */
export class ExecOutput {
  readonly #options: ExecOutputOptions;
  readonly #interrupt: (thrown: unknown) => void;
  readonly #stdout = new ByteCollector();
  readonly #stderr = new ByteCollector();
  #room: number;
  #isTruncated = false;

  /** `interrupt` gets what a callback throws. */
  constructor(options: ExecOutputOptions, interrupt: (thrown: unknown) => void) {
    this.#options = options;
    this.#interrupt = interrupt;
    this.#room = options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
    if (!(this.#room >= 0)) throw invalidLimit(options.maxOutputBytes);
  }

  add({ bytes, source, dropped }: StreamChunk): void {
    const isStderr = source === "stderr";
    if (dropped > 0 || bytes.length > this.#room) this.#isTruncated = true;
    if (this.#room > 0) {
      const kept = bytes.length > this.#room ? bytes.subarray(0, this.#room) : bytes;
      this.#room -= kept.length;
      (isStderr ? this.#stderr : this.#stdout).add(kept);
    }
    try {
      (isStderr ? this.#options.onStderr : this.#options.onStdout)?.(bytes);
    } catch (thrown) {
      this.#interrupt(thrown);
    }
  }

  result(exit: ProcessExit): ExecResult {
    return {
      exitCode: exit.exitCode,
      signal: exit.signal,
      stdout: this.#stdout.text(),
      stderr: this.#stderr.text(),
      durationMs: exit.durationMs,
      timedOut: exit.timedOut,
      outOfMemory: exit.outOfMemory,
      truncated: this.#isTruncated,
    };
  }
}

function invalidLimit(maxOutputBytes: unknown): SandboxError {
  return new SandboxError("invalid_limit", {
    message: `maxOutputBytes ${String(maxOutputBytes)} is not allowed; allowed is a number of bytes, 0 or more`,
  });
}
