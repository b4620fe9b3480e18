import type { Clock, PingAgent } from "@sandpiper/core";

const BEAT_MS = 15_000;
/**
 * How many beats in a row. A guest that is only slow, because it is translated, throttled or out of memory, answers
 * within seconds. Beats are counted instead of time: after this program itself was suspended, its clock jumps before it
 * has read the pending bytes.
 */
const MISSED_BEATS = 4;

export interface GuestPulseOptions {
  readonly clock: Clock;
  /** Whether a byte has come from the guest since the last call. */
  readonly takeHeard: () => boolean;
  /** Whether the machine is paused on purpose. */
  readonly isStill: () => boolean;
  /** Called once. */
  readonly onSilent: (message: string) => void;
}

/**
 * Asks a silent agent whether it still runs. QEMU answers for itself even while its guest hangs, so only bytes from the
 * guest count.
 */
export class GuestPulse {
  readonly #options: GuestPulseOptions;
  readonly #stopping = new AbortController();
  readonly #ask: PingAgent;
  #cancel: () => void = () => {};
  #isAsking = false;
  #missed = 0;

  constructor(ask: PingAgent, options: GuestPulseOptions) {
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
    // A lost channel reports itself.
    await this.#ask(this.#stopping.signal).catch(() => {});
    this.#isAsking = false;
  }
}
