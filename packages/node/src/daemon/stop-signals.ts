import { constants } from "node:os";

/** `process`, or a double of it in tests. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface StopSignalsOptions {
  readonly source: SignalSource;
  /** Called at the second signal, which ends the program at once with this code. */
  readonly onSecond: (exitCode: number) => void;
  readonly monotonicMs?: (() => number) | undefined;
}

const signals = ["SIGINT", "SIGTERM"] as const;

/** One Ctrl-C can arrive twice: from the terminal, and from npm, which forwards its own. */
const SAME_KEYPRESS_MS = 250;

/** The first signal stops the node gracefully, the second one ends the program. */
export class StopSignals implements Disposable {
  readonly #options: StopSignalsOptions;
  readonly #monotonicMs: () => number;
  readonly #first = Promise.withResolvers<NodeJS.Signals>();
  #firstAtMs: number | undefined;

  constructor(options: StopSignalsOptions) {
    this.#options = options;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    for (const signal of signals) options.source.on(signal, this.#onSignal);
  }

  /** Resolves with the first signal. */
  get first(): Promise<NodeJS.Signals> {
    return this.#first.promise;
  }

  [Symbol.dispose](): void {
    for (const signal of signals) this.#options.source.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = this.#monotonicMs();
    if (this.#firstAtMs === undefined) {
      this.#firstAtMs = nowMs;
      this.#first.resolve(signal);
    } else if (nowMs - this.#firstAtMs >= SAME_KEYPRESS_MS) {
      this.#options.onSecond(128 + constants.signals[signal]);
    }
  };
}
