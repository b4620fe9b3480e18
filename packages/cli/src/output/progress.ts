import { type Clock, systemClock } from "@sandpiper/protocol/clock";
import type { Arguments } from "../command/arguments.ts";
import { shortBytes } from "./format.ts";

/** Shorter work needs no progress line. */
const SILENT_MS = 1000;
const REFRESH_MS = 200;
const CLEAR_LINE = "\r\x1b[K";

export interface ProgressOptions {
  /** By default only on a terminal. */
  readonly isShown?: boolean;
  readonly write?: (text: string) => void;
  readonly clock?: Clock;
}

/** One line on the terminal about work that takes over a second; disposing it erases the line. */
export class Progress implements Disposable {
  #label: string;
  readonly #write: (text: string) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #bytes = 0;
  #isVisible = false;
  #stopTimer: () => void = () => {};

  constructor(label: string, options: ProgressOptions = {}) {
    const { isShown = process.stderr.isTTY === true, clock = systemClock } = options;
    this.#label = label;
    this.#write = options.write ?? ((text) => process.stderr.write(text));
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    if (isShown) this.#stopTimer = clock.schedule(SILENT_MS, this.#show);
  }

  /** Names the next step. */
  becomes(label: string): void {
    this.#label = label;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** The same bytes, counted as they pass. */
  async *counting(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const bytes of source) {
      this.add(bytes.length);
      yield bytes;
    }
  }

  [Symbol.dispose](): void {
    this.#stopTimer();
    this.#stopTimer = () => {};
    if (this.#isVisible) this.#write(CLEAR_LINE);
    this.#isVisible = false;
  }

  readonly #show = (): void => {
    const elapsedMs = this.#clock.monotonicMs() - this.#startedAtMs;
    const seconds = `${Math.floor(elapsedMs / 1000)} s`;
    const speed = `${shortBytes(this.#bytes)}, ${shortBytes((this.#bytes * 1000) / elapsedMs)}/s`;
    this.#write(`${CLEAR_LINE}${this.#label}… ${this.#bytes > 0 ? `${speed}, ` : ""}${seconds}`);
    this.#isVisible = true;
    this.#stopTimer = this.#clock.schedule(REFRESH_MS, this.#show);
  };
}

/** `--quiet` hides progress. */
export function progressOf(arguments_: Arguments): ProgressOptions {
  return arguments_.has("quiet") ? { isShown: false } : {};
}

/** Shows progress for the length of the work. */
export async function withProgress<Result>(
  label: string,
  arguments_: Arguments,
  work: () => Promise<Result>,
): Promise<Result> {
  using _ = new Progress(label, progressOf(arguments_));
  return await work();
}
