import type { ExecResultBody, ProcessExitBody } from "../api/process.ts";
import { SandboxError } from "../errors/sandbox-error.ts";
import { ByteCollector } from "../streams/byte-collector.ts";
import type { StreamChunk } from "../streams/output-chunk.ts";
import type { CommandOptions } from "./command.ts";

export const DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface ExecOutputOptions {
  /** The result keeps this much of stdout and stderr together, 64 MiB by default; `truncated` reports a loss. */
  readonly maxOutputBytes?: number | undefined;
  /** Called as output arrives, also with output that the result does not keep. */
  readonly onStdout?: ((bytes: Uint8Array) => void) | undefined;
  readonly onStderr?: ((bytes: Uint8Array) => void) | undefined;
}

export interface ExecOptions extends CommandOptions, ExecOutputOptions {
  /** Sent to standard input, which then ends. Without it the command reads an empty input. */
  readonly stdin?: string | Uint8Array | undefined;
  /** Kills the command's whole process tree; exec then rejects with `canceled`. */
  readonly signal?: AbortSignal | undefined;
}

export type ExecResult = Readonly<ExecResultBody>;

/** Collects the output of one command. */
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

  /** Rethrows errors of callbacks. */
  add({ bytes, source, dropped }: StreamChunk): void {
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
    message: `maxOutputBytes ${String(maxOutputBytes)} is not a number of bytes`,
  });
}
