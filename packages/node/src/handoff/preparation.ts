import type { Clock, PreparedSandbox } from "@sandpiper/core";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { Providers } from "../sandboxes/providers.ts";

/** An owner needs about this long to save a small sandbox; a longer preparation would keep the sandbox from running. */
const SHORT_MS = 1000;

export interface PreparationOptions {
  readonly providers: Pick<Providers, "prepare">;
  readonly clock: Clock;
  /** The duration of the last preparation of each provider. */
  readonly prepareTimes: Map<string, number>;
  readonly signal?: AbortSignal | undefined;
  readonly onPrepared: () => void;
}

/** An instance that is prepared while the sandbox still runs on, or is saved by, its owner. */
export class Preparation implements AsyncDisposable {
  readonly #provider: string;
  readonly #prepareTimes: Map<string, number>;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  #failure: { readonly thrown: unknown } | undefined;
  #instance: Promise<PreparedSandbox> | undefined;

  constructor(
    { record, requirements }: SavedSandbox,
    { providers, clock, prepareTimes, signal, onPrepared }: PreparationOptions,
  ) {
    const { id, provider } = record;
    const startedAtMs = clock.monotonicMs();
    this.#provider = provider;
    this.#prepareTimes = prepareTimes;
    this.#signal = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    this.#instance = providers.prepare(instanceKey(record, requirements), { id, signal: this.#signal });
    this.#instance.then(
      () => {
        prepareTimes.set(provider, clock.monotonicMs() - startedAtMs);
        onPrepared();
      },
      (thrown) => {
        this.#failure = { thrown };
        this.#stop.abort(thrown);
      },
    );
  }

  /**
   * Waits for a preparation that may take long, such as the boot of a machine: until then the sandbox runs on its owner. A
   * short one continues while the owner saves the sandbox.
   */
  async headStart(): Promise<void> {
    if ((this.#prepareTimes.get(this.#provider) ?? Number.POSITIVE_INFINITY) > SHORT_MS) await this.#instance;
  }

  /** Runs work that ends early, with the cause, if the preparation fails. */
  async while<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await work(this.#signal);
    } catch (thrown) {
      throw this.#failure === undefined ? thrown : this.#failure.thrown;
    }
  }

  /** From now on the instance is the caller's to restore or destroy. */
  take(): Promise<PreparedSandbox> | undefined {
    const instance = this.#instance;
    this.#instance = undefined;
    return instance;
  }

  /** Destroys an instance that was not taken. */
  async [Symbol.asyncDispose](): Promise<void> {
    const instance = this.take();
    if (instance === undefined) return;
    this.#stop.abort();
    await (await instance.catch(() => undefined))?.destroy();
  }
}
