import { randomUUID } from "node:crypto";
import type { Clock } from "@sandpiper/core";
import type { FlowReason, FlowRecord } from "@sandpiper/protocol";
import type { FlowOwner, FlowSink } from "./flow-sink.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface FlowRecordsOptions {
  readonly owner: FlowOwner;
  readonly sink: FlowSink;
  readonly clock: Clock;
}

/** What a new record says; the rest is empty. */
export type RecordFields = Pick<FlowRecord, "kind" | "decision"> &
  Partial<Omit<FlowRecord, "id" | "sandboxId" | "at" | "kind" | "decision">>;

/** A sandbox that tries in a loop must not fill the log: further denials of a kind are counted in one record per second. */
const DENIALS_PER_SECOND = 50;
const MERGE_MS = 1000;

/** Makes the records of one sandbox. */
export class FlowRecords {
  readonly #options: FlowRecordsOptions;
  readonly #denials: TokenBucket;
  readonly #merged = new Map<string, { record: FlowRecord; readonly stop: () => void }>();

  constructor(options: FlowRecordsOptions) {
    this.#options = options;
    this.#denials = new TokenBucket(DENIALS_PER_SECOND, options.clock);
  }

  /** A record of something that begins now. */
  begin(fields: RecordFields): FlowRecord {
    return {
      id: randomUUID(),
      sandboxId: this.#options.owner.sandboxId,
      at: this.#options.clock.now().toISOString(),
      name: null,
      address: null,
      port: null,
      queryType: null,
      pid: null,
      program: null,
      rule: null,
      suggestion: null,
      reason: null,
      sentBytes: 0,
      receivedBytes: 0,
      durationMs: null,
      endedAt: null,
      count: 1,
      ...fields,
    };
  }

  opened(record: FlowRecord): void {
    this.#options.sink.opened(record, this.#options.owner);
  }

  closed(record: FlowRecord): void {
    this.#options.sink.closed(record, this.#options.owner);
  }

  /** Records something without a duration. */
  record(fields: RecordFields): void {
    const begun = this.begin(fields);
    this.settled({ ...begun, durationMs: 0, endedAt: begun.at });
  }

  /** As `closed`, for what was not opened: denials beyond a rate are merged. */
  settled(record: FlowRecord): void {
    if (record.decision === "allowed" || this.#denials.tryTake()) this.closed(record);
    else this.#merge(record);
  }

  /** Passes on what is still merged. */
  flush(): void {
    for (const key of [...this.#merged.keys()]) this.#pass(key);
  }

  #merge(record: FlowRecord): void {
    const key = `${record.kind} ${record.reason as FlowReason}`;
    const earlier = this.#merged.get(key);
    if (earlier !== undefined) {
      earlier.record = { ...earlier.record, count: earlier.record.count + record.count };
      return;
    }
    const stop = this.#options.clock.schedule(MERGE_MS, () => this.#pass(key));
    this.#merged.set(key, { record, stop });
  }

  #pass(key: string): void {
    const merged = this.#merged.get(key);
    this.#merged.delete(key);
    merged?.stop();
    if (merged !== undefined) this.closed(merged.record);
  }
}
