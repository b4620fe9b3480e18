import type { Clock } from "@sandpiper/core";

const BEAT_MS = 5_000;
/** An overloaded host answers slowly too. */
const SILENCE_MS = 30_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /**
   * Asks the program that runs the machine. Resolves with the problem of a machine that has failed; rejects when the
   * machine is gone.
   */
  readonly ask: () => Promise<string | undefined>;
  /** Called once. */
  readonly onSilent: (message: string) => void;
  readonly onBeat?: (() => void) | undefined;
}

/**
 * Asks a machine regularly whether it runs. Its end is noticed elsewhere; a machine that hangs only stops answering.
 */
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
