import { type ProcessExitBody, SandboxError } from "@sandpiper/protocol";
import { ByteCollector } from "./byte-collector.ts";
import type { OutputChunk } from "./output-chunk.ts";

const DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface ExecOutputOptions {
  /** Output beyond this is read and thrown away, and the result says so; stdout and stderr together. 64 MiB by default. */
  readonly maxOutputBytes?: number | undefined;
  /** Called as output arrives, also with what the result does not keep. */
  readonly onStdout?: ((bytes: Uint8Array) => void) | undefined;
  readonly onStderr?: ((bytes: Uint8Array) => void) | undefined;
}

export interface ExecResult {
  /** 128 + the signal's number when a signal ended the command. */
  readonly exitCode: number;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  /** True when there was more output than maxOutputBytes; what is missing is the end. */
  readonly truncated: boolean;
}

/** Gathers the output of one command. */
export class ExecOutput {
  readonly #options: ExecOutputOptions;
  readonly #stdout = new ByteCollector();
  readonly #stderr = new ByteCollector();
  #room: number;
  #isTruncated = false;

  constructor(options: ExecOutputOptions) {
    this.#options = options;
    this.#room = options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
    if (!(this.#room >= 0)) throw invalidLimit(options.maxOutputBytes);
  }

  /** Throws what a callback throws. */
  add({ bytes, source, dropped }: OutputChunk): void {
    const isStderr = source === "stderr";
    if (dropped > 0 || bytes.length > this.#room) this.#isTruncated = true;
    if (this.#room > 0) {
      const kept = bytes.length > this.#room ? bytes.subarray(0, this.#room) : bytes;
      this.#room -= kept.length;
      (isStderr ? this.#stderr : this.#stdout).add(kept);
    }
    (isStderr ? this.#options.onStderr : this.#options.onStdout)?.(bytes);
  }

  result({ exitCode, signal, durationMs, timedOut, outOfMemory }: ProcessExitBody): ExecResult {
    return {
      exitCode,
      signal,
      stdout: this.#stdout.text(),
      stderr: this.#stderr.text(),
      durationMs,
      timedOut,
      outOfMemory,
      truncated: this.#isTruncated,
    };
  }
}

function invalidLimit(maxOutputBytes: unknown): SandboxError {
  return new SandboxError("invalid_limit", {
    message: `maxOutputBytes ${String(maxOutputBytes)} is not allowed; allowed is a number of bytes, 0 or more`,
  });
}
