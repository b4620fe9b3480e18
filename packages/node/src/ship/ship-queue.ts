import { type Clock, SandboxError } from "@sandpiper/core";
import type { Receiver } from "./receiver.ts";
import type { ShippedRecord } from "./shipped-record.ts";

/** At about 500 bytes each, 10 MB of memory while a receiver is down. */
const MAX_QUEUED = 20_000;
const MAX_BATCH = 500;
const MAX_BACK_OFF_MS = 30_000;
const SEND_TIMEOUT_MS = 10_000;
/** Dropped records are logged at most this often. */
const REPORT_MS = 60_000;

export type ShipOutcome = "sent" | "dropped";

export interface ShipQueueOptions {
  readonly receiver: Receiver;
  readonly clock: Clock;
  readonly count: (receiver: string, outcome: ShipOutcome, records: number) => void;
  /** Called when a receiver starts to fail, and with the number of dropped records. */
  readonly onTrouble: (receiver: string, trouble: { readonly error?: SandboxError; readonly dropped?: number }) => void;
  readonly maxQueued?: number | undefined;
}

/** Sends records to one receiver in order. Adding never waits; while the queue is full, new records are dropped. */
export class ShipQueue implements AsyncDisposable {
  readonly #options: ShipQueueOptions;
  readonly #stopping = new AbortController();
  #queued: ShippedRecord[] = [];
  #sending: Promise<void> | undefined;
  #cancelPause = () => {};
  #failures = 0;
  #dropped = 0;
  #cancelReport: (() => void) | undefined;

  constructor(options: ShipQueueOptions) {
    this.#options = options;
  }

  add(records: readonly ShippedRecord[]): void {
    this.#add(records, this.#options.maxQueued ?? MAX_QUEUED);
  }

  /** Like `add`, for records that sandboxes cause: they leave half of the queue to the others. */
  addLast(records: readonly ShippedRecord[]): void {
    this.#add(records, Math.floor((this.#options.maxQueued ?? MAX_QUEUED) / 2));
  }

  #add(records: readonly ShippedRecord[], maxQueued: number): void {
    const room = Math.max(0, maxQueued - this.#queued.length);
    this.#queued.push(...records.slice(0, room));
    if (records.length > room) this.#drop(records.length - room);
    // In a later turn of the event loop: the caller serves a request.
    this.#sending ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#run());
  }

  /** Sends what is queued, for at most this long. */
  async close(graceMs: number): Promise<void> {
    const { clock, receiver } = this.#options;
    const cancel = clock.schedule(graceMs, () => this.#stop());
    // A receiver that has just failed gets one more attempt.
    this.#cancelPause();
    if (this.#failures > 0) this.#stop();
    await this.#sending;
    cancel();
    this.#stop();
    if (this.#queued.length > 0) this.#drop(this.#queued.length);
    this.#report();
    await receiver[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0);
  }

  #stop(): void {
    this.#stopping.abort();
    this.#cancelPause();
  }

  async #run(): Promise<void> {
    const { receiver, count } = this.#options;
    while (this.#queued.length > 0 && !this.#stopping.signal.aborted) {
      const batch = this.#queued.slice(0, MAX_BATCH);
      try {
        const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
        const refused = await receiver.send(batch, signal);
        this.#queued = this.#queued.slice(batch.length);
        this.#failures = 0;
        count(receiver.name, "sent", batch.length - refused);
        if (refused > 0) this.#drop(refused);
      } catch (thrown) {
        if (this.#failures++ === 0) this.#options.onTrouble(receiver.name, { error: shipFailed(thrown) });
        await this.#pause(Math.min(1000 * 2 ** (this.#failures - 1), MAX_BACK_OFF_MS));
      }
    }
    this.#sending = undefined;
  }

  #pause(delayMs: number): Promise<void> {
    if (this.#stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.clock.schedule(delayMs, resolve);
      this.#cancelPause = () => {
        cancel();
        resolve();
      };
    });
  }

  #drop(records: number): void {
    const { clock, count, receiver } = this.#options;
    count(receiver.name, "dropped", records);
    this.#dropped += records;
    this.#cancelReport ??= clock.schedule(REPORT_MS, () => this.#report());
  }

  #report(): void {
    this.#cancelReport?.();
    this.#cancelReport = undefined;
    if (this.#dropped > 0) this.#options.onTrouble(this.#options.receiver.name, { dropped: this.#dropped });
    this.#dropped = 0;
  }
}

function shipFailed(thrown: unknown): SandboxError {
  if (SandboxError.is(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SandboxError("ship_failed", { message, cause: thrown });
}
