import type { Clock } from "@sandpiper/core";
import type { QmpClient } from "./qmp-client.ts";

const BEAT_MS = 5_000;
/** A host that is out of breath is slow to answer, too. */
const SILENCE_MS = 30_000;

export interface HeartbeatOptions {
  readonly clock: Clock;
  readonly monitor: Pick<QmpClient, "execute" | "isClosed">;
  /** Told once. */
  readonly onSilent: (message: string) => void;
}

/** Asks a machine again and again whether it runs. One that ends closes its monitor; one that hangs only stops to answer. */
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
    const { clock, monitor, onSilent } = this.#options;
    this.#cancel = clock.schedule(SILENCE_MS, () => {
      this.stop();
      onSilent(`its virtual machine did not answer for ${SILENCE_MS / 1000} s`);
    });
    // A monitor that is gone says so by itself.
    const status = await monitor.execute("query-status", {}).catch(() => undefined);
    this.#cancel();
    if (this.#isStopped || status === undefined) return;
    if (status.status === "internal-error" || status.status === "guest-panicked") {
      this.stop();
      onSilent(`its virtual machine stands still: ${status.status}`);
    } else {
      this.#wait();
    }
  }
}
