import type { Clock, SandboxError } from "@sandpiper/protocol";

/**
 * The largest chunk of one message, and the best size for sources. With its lines it fits into a pipe of 1 MiB, so that one
 * write and one read carry it.
 */
export const UPLOAD_PIECE_BYTES = 960 * 1024;

export interface OutboundStreamOptions {
  readonly clock: Clock;
  /** How long the agent may grant no credit; undefined for no limit. */
  readonly stallTimeoutMs: number | undefined;
  /** Sends one message; returns a promise while the channel wants its sender to wait. */
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined;
  readonly writeEnd: () => void;
  /** Called when the agent granted no credit in time. */
  readonly stalled: () => void;
}

/** Sends bytes as the agent grants credit and the channel accepts them. */
export class OutboundStream {
  readonly #options: OutboundStreamOptions;
  #credit = 0;
  #isOpen = false;
  #failure: SandboxError | undefined;
  #wake: (() => void) | undefined;
  /** Earlier sends, which keep their order. */
  #tail: Promise<void> = Promise.resolve();

  constructor(options: OutboundStreamOptions) {
    this.#options = options;
  }

  grant(bytes: number): void {
    this.#isOpen = true;
    this.#credit = Math.min(this.#credit + bytes, Number.MAX_SAFE_INTEGER);
    this.#wake?.();
  }

  /** Fails the sender when the call has ended. */
  fail(error: SandboxError): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  /** Resolves with the agent's first grant. */
  async opened(): Promise<void> {
    while (!this.#isOpen) await this.#sleepOrStall();
  }

  /** Resolves when the channel has accepted the bytes; they must not change before. */
  send(bytes: Uint8Array): Promise<void> {
    return this.#inTurn(() => this.#send(bytes));
  }

  end(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#failure === undefined) this.#options.writeEnd();
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => {});
    return turn;
  }

  async #send(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      while (this.#credit === 0) await this.#sleepOrStall();
      if (this.#failure !== undefined) throw this.#failure;
      const size = Math.min(UPLOAD_PIECE_BYTES, this.#credit, bytes.length - at);
      this.#credit -= size;
      const taken = this.#options.write(bytes.subarray(at, at + size));
      at += size;
      if (taken !== undefined) await this.until(taken);
    }
  }

  /** Waits for a promise or the failure of the call, whichever comes first; one at a time. */
  async until<T>(outside: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
      this.#wake?.();
    };
    outside.then(settle, settle);
    while (!isSettled) await this.#sleep();
    return outside;
  }

  async #sleepOrStall(): Promise<void> {
    const { clock, stallTimeoutMs, stalled } = this.#options;
    if (stallTimeoutMs === undefined) return this.#sleep();
    const stopTimer = clock.schedule(stallTimeoutMs, stalled);
    try {
      await this.#sleep();
    } finally {
      stopTimer();
    }
  }

  async #sleep(): Promise<void> {
    if (this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }
}
