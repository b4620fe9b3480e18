import type { Timing } from "../timing.ts";

const QUIET_MS = 15_000;
const ANSWER_MS = 10_000;

export interface HeartbeatOptions {
  readonly timing: Timing;
  /** Asks the node to answer. */
  readonly ask: () => void;
  /** Called when no answer came. */
  readonly onDead: () => void;
}

/**
 * Detects a connection that died without being closed, for example after sleep or a change of network. Without it a
 * command would wait until the system gives up, which takes minutes.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #hasHeard = true;
  #hasAsked = false;
  #cancel: () => void;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#cancel = this.#schedule(QUIET_MS);
  }

  /** Called when a message arrives. */
  heard(): void {
    this.#hasHeard = true;
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    if (!this.#hasHeard && this.#hasAsked) {
      this.#options.onDead();
      return;
    }
    this.#hasAsked = !this.#hasHeard;
    this.#hasHeard = false;
    this.#cancel = this.#schedule(this.#hasAsked ? ANSWER_MS : QUIET_MS);
    if (this.#hasAsked) this.#options.ask();
  }

  #schedule(delayMs: number): () => void {
    return this.#options.timing.schedule(delayMs, () => this.#check());
  }
}
