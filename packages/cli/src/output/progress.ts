import { type Clock, systemClock } from "@sandpiper/core";
import { shortBytes } from "./amounts.ts";

/** What takes less is over before anybody wonders. */
const SILENT_MS = 1000;
const REFRESH_MS = 200;
const CLEAR_LINE = "\r\x1b[K";

export interface ProgressOptions {
  /** Nobody watches a file. */
  readonly isShown?: boolean;
  readonly write?: (text: string) => void;
  readonly clock?: Clock;
}

/** One line on the terminal about something that takes over a second; it goes away with it. */
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

  /** What is being done now. */
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
