import type { Clock } from "@sandpiper/core";
import type { ApiClient } from "./api-client.ts";

const BEAT_MS = 5_000;
/** A host that is out of breath is slow to answer, too. */
const SILENCE_MS = 30_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  readonly api: Pick<ApiClient, "describe">;
  /** Told once. */
  readonly onSilent: (message: string) => void;
  readonly onBeat: () => void;
}

/** Asks a machine again and again whether it is there. One that ends lets go of its connections; one that hangs only stops to answer. */
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
    const { clock, api, onSilent, onBeat } = this.#options;
    this.#cancel = clock.schedule(SILENCE_MS, () => {
      this.stop();
      onSilent(`its Firecracker did not answer for ${SILENCE_MS / 1000} s`);
    });
    // One that is gone is noticed otherwise.
    await api.describe().catch(() => {});
    this.#cancel();
    if (this.#isStopped) return;
    onBeat();
    this.#wait();
  }
}
