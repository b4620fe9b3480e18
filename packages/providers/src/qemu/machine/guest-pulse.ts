import type { AskAgent, Clock } from "@sandpiper/core";

const BEAT_MS = 15_000;
/**
 * So often in a row. A guest that is merely slow, because it is translated, held to a fraction of a processor or out of memory,
 * answers within seconds: its agent only has to run for a moment. Beats are counted and no time is compared, since a program that
 * was stopped itself finds its clock far ahead before it has read what came meanwhile.
 */
const MISSED_BEATS = 4;

export interface GuestPulseOptions {
  readonly clock: Clock;
  /** Whether a byte came from the guest since this was asked last. */
  readonly takeHeard: () => boolean;
  /** Whether it stands still because it is told to. */
  readonly isStill: () => boolean;
  /** Told once. */
  readonly onSilent: (message: string) => void;
}

/**
 * Asks a quiet agent whether it is there. QEMU answers for itself, also while its guest hangs: what is waited for is any byte of the
 * guest, the answer or something else.
 */
export class GuestPulse {
  readonly #options: GuestPulseOptions;
  readonly #stopping = new AbortController();
  readonly #ask: AskAgent;
  #cancel: () => void = () => {};
  #isAsking = false;
  #missed = 0;

  constructor(ask: AskAgent, options: GuestPulseOptions) {
    this.#ask = ask;
    this.#options = options;
    this.#wait();
  }

  stop(): void {
    this.#cancel();
    this.#stopping.abort();
  }

  #wait(): void {
    this.#cancel = this.#options.clock.schedule(BEAT_MS, this.#beat);
  }

  readonly #beat = (): void => {
    const { takeHeard, isStill, onSilent } = this.#options;
    if (takeHeard() || isStill() || !this.#isAsking) this.#missed = 0;
    else this.#missed += 1;
    if (this.#missed >= MISSED_BEATS) {
      this.stop();
      onSilent(`its guest did not answer for ${(MISSED_BEATS * BEAT_MS) / 1000} s, though its virtual machine runs`);
      return;
    }
    if (!this.#isAsking) void this.#askOnce();
    this.#wait();
  };

  async #askOnce(): Promise<void> {
    this.#isAsking = true;
    // A channel that is lost says so by itself.
    await this.#ask(this.#stopping.signal).catch(() => {});
    this.#isAsking = false;
  }
}
