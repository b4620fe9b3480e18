import type { Clock, FrameDecoder } from "@sandpiper/protocol";
import { HelloScanner } from "./hello-scanner.ts";
import { WorkBudget } from "./work-budget.ts";

/** Parsing a line takes far longer than copying the bytes after it. */
const LINE_BYTES_PER_UNIT = 256;
const ATTACHMENT_BYTES_PER_UNIT = 64 * 1024;
const SCANNED_BYTES_PER_UNIT = 1024;
const SCAN_BYTES = 64 * 1024;
/** Passing a small piece to its reader takes as long as passing a large one. */
const SMALL_DELIVERY_BYTES = 4096;
const SMALL_DELIVERY_UNITS = 4;

export interface PacedInputOptions {
  readonly decoder: FrameDecoder;
  /** Bytes before the answer to this hello belong to an earlier caller. */
  readonly helloId: string;
  readonly clock: Clock;
}

/** Decodes the bytes of a channel no faster than its work budget allows, so that a guest cannot occupy the event loop. */
export class PacedInput {
  readonly #decoder: FrameDecoder;
  readonly #clock: Clock;
  readonly #budget: WorkBudget;
  #scanner: HelloScanner | undefined;
  /** Chunks for the next turns: copies, because a chunk is only valid during its call. */
  #queue: Uint8Array[] = [];
  #drained: PromiseWithResolvers<void> | undefined;
  #stopTimer: (() => void) | undefined;
  #isStopped = false;

  constructor({ decoder, helloId, clock }: PacedInputOptions) {
    this.#decoder = decoder;
    this.#clock = clock;
    this.#budget = new WorkBudget(clock);
    this.#scanner = new HelloScanner(helloId);
  }

  /** Resolves when every byte so far is decoded; undefined when that is already so. */
  get drained(): Promise<void> | undefined {
    return this.#drained?.promise;
  }

  /** Returns a promise when the sender should wait before it sends more. */
  push(chunk: Uint8Array): Promise<void> | undefined {
    if (chunk.length === 0) return this.drained;
    // Each chunk costs a system call, however small it is.
    this.#budget.spend(1);
    if (this.#drained !== undefined) this.#queue.push(chunk.slice());
    else this.#takeTurn([chunk]);
    return this.drained;
  }

  /** Counts the work of passing this many bytes to a reader. */
  delivered(size: number): void {
    if (size < SMALL_DELIVERY_BYTES) this.#budget.spend(SMALL_DELIVERY_UNITS);
  }

  /** Counts work that a reader of decoded bytes does; a promise when it should let others run before it continues. */
  work(units: number): Promise<void> | undefined {
    if (!this.#budget.spendOutside(units)) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#clock.schedule(this.#budget.waitMs, resolve);
    return promise;
  }

  /** Drops what is not decoded yet. */
  stop(): void {
    this.#isStopped = true;
    this.#stopTimer?.();
    this.#finish();
  }

  #takeTurn(chunks: readonly Uint8Array[]): void {
    let index = 0;
    let at = 0;
    const outcome = this.#budget.runTurn(() => {
      const chunk = chunks[index] as Uint8Array;
      at = this.#step(chunk, at);
      if (at === chunk.length) {
        index++;
        at = 0;
      }
      return index < chunks.length && !this.#isStopped;
    });
    if (outcome === "done") {
      this.#finish();
      return;
    }
    this.#queue = chunks.slice(index);
    this.#queue[0] = (chunks[index] as Uint8Array).slice(at);
    this.#drained ??= Promise.withResolvers();
    this.#stopTimer = this.#clock.schedule(this.#budget.waitMs, () => this.#takeTurn(this.#queue));
  }

  /** Decodes one part of the chunk, and returns where the next one starts. */
  #step(chunk: Uint8Array, at: number): number {
    if (this.#scanner !== undefined) return this.#scan(this.#scanner, chunk, at);
    const { isInAttachment } = this.#decoder;
    const next = this.#decoder.step(chunk, at);
    const size = next - at;
    this.#budget.spend(isInAttachment ? size / ATTACHMENT_BYTES_PER_UNIT : 1 + size / LINE_BYTES_PER_UNIT);
    return next;
  }

  #scan(scanner: HelloScanner, chunk: Uint8Array, at: number): number {
    const end = Math.min(at + SCAN_BYTES, chunk.length);
    this.#budget.spend((end - at) / SCANNED_BYTES_PER_UNIT);
    const found = scanner.push(chunk.subarray(at, end));
    if (found === undefined) return end;
    this.#scanner = undefined;
    const [prefix, rest] = found;
    this.#decoder.push(prefix);
    return end - rest.length;
  }

  #finish(): void {
    this.#queue = [];
    this.#drained?.resolve();
    this.#drained = undefined;
  }
}
