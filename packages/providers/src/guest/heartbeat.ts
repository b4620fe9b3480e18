import type { Clock } from "@sandpiper/core";

const BEAT_MS = 5_000;
/** A host that is out of breath is slow to answer, too. */
const SILENCE_MS = 30_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /** Asks the program that runs the machine. Resolves with what is wrong with a machine that cannot go on; fails for one that is gone. */
  readonly ask: () => Promise<string | undefined>;
  /** Told once. */
  readonly onSilent: (message: string) => void;
  readonly onBeat?: (() => void) | undefined;
}

/** Asks a machine again and again whether it runs. One that ends is noticed otherwise; one that hangs only stops to answer. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#wait();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #wait(): void {
    this.#cancel = this.#options.clock.schedule(BEAT_MS, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    const { clock, ask, onBeat } = this.#options;
    this.#cancel = clock.schedule(SILENCE_MS, () => {
      this.#end(`its virtual machine did not answer for ${SILENCE_MS / 1000} s`);
    });
    const trouble = await ask().catch(() => undefined);
    this.#cancel();
    if (this.#isStopped) return;
    if (trouble !== undefined) return this.#end(trouble);
    onBeat?.();
    this.#wait();
  }

  #end(message: string): void {
    this.stop();
    this.#options.onSilent(message);
  }
}
