import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { FlowRecord, SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import type { FlowEntry, FlowPage, FlowQuery } from "./flow-entry.ts";
import { FlowTable, type FlowTableOptions, type FlowWrite } from "./flow-table.ts";

/** How long a record waits for others to be written with it. A kill -9 loses no more than this. */
const WRITE_DELAY_MS = 100;
/** Writing this many rows takes up to 10 ms, in which the node does nothing else. */
const ROWS_PER_WRITE = 200;
/** Between two writes while more records wait. */
const NEXT_WRITE_DELAY_MS = 10;
/** How many records wait in memory while writes fail; beyond that, the oldest are only counted. */
const MAX_PENDING = 10_000;
const ROWS_PER_READ = 256;
const WRITES_PER_READ = 4;
/** Fits the digits of a query parameter until the year 2286. */
const CURSORS_PER_MS = 100;

/** Receives entries after they were written. Must not throw. */
type FlowListener = (entries: readonly FlowWrite[]) => void;

interface FlowOwner {
  readonly tenant: string;
}

export interface FlowLogOptions extends FlowTableOptions {
  readonly clock?: Clock | undefined;
  /** Called when records could not be written. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

/** What sandboxes did on the network. Adding a record never waits; records are written in batches and then passed on. */
export class FlowLog implements Disposable {
  readonly #table: FlowTable;
  readonly #options: FlowLogOptions;
  readonly #clock: Clock;
  /** By the record's id, in the order of their cursors. */
  readonly #pending = new Map<string, FlowWrite>();
  /** Records that did not fit into memory, until their number is written. */
  readonly #lost = new Map<SandboxId, { readonly tenant: string; readonly count: number }>();
  /** The cursors of written records of connections that are still open. */
  readonly #open = new Map<string, number>();
  readonly #followers = new Map<SandboxId, Set<Follower>>();
  readonly #listeners = new Set<FlowListener>();
  #newestCursor: number;
  #cancelWrite: (() => void) | undefined;

  constructor(database: NodeDatabase, options: FlowLogOptions) {
    this.#table = new FlowTable(database, options);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#newestCursor = this.#table.newestCursor;
    this.#endAbandoned();
  }

  /** Records a connection that is still open. */
  opened(record: FlowRecord, owner: FlowOwner): void {
    this.#add(record, owner);
  }

  /** Records what has ended, also if it never began. */
  closed(record: FlowRecord, owner: FlowOwner): void {
    this.#add(record, owner);
  }

  /** Oldest first; with `newest`, the last ones. */
  list(sandboxId: SandboxId, query: FlowQuery & { readonly limit: number; readonly newest?: boolean }): FlowPage {
    // A reader waits for what has just happened, not for a flood.
    for (let writes = 0; writes < WRITES_PER_READ && this.#pending.size > 0; writes += 1) if (!this.#write()) break;
    return this.#table.list(sandboxId, query);
  }

  /**
   * Yields what was recorded after a cursor and then what is new, at the reader's pace, until the signal aborts or the
   * sandbox leaves this node.
   */
  async *follow(
    sandboxId: SandboxId,
    query: FlowQuery,
    signal: AbortSignal,
  ): AsyncGenerator<FlowEntry, void, undefined> {
    let { after = 0 } = query;
    using follower = this.#follow(sandboxId, signal);
    while (!signal.aborted) {
      const { isEnded } = follower;
      const { entries } = this.#table.list(sandboxId, { ...query, after, limit: ROWS_PER_READ });
      for (const entry of entries) {
        if (signal.aborted) return;
        after = entry.cursor;
        yield entry;
      }
      if (entries.length === 0 && isEnded) return;
      if (entries.length === 0) await follower.next();
    }
  }

  /** Lets the readers of a sandbox that was destroyed, or moved, read the rest, and ends them. */
  endFollowers(sandboxId: SandboxId): void {
    this.#writeAll();
    for (const follower of this.#followers.get(sandboxId) ?? []) follower.end();
  }

  subscribe(listener: FlowListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Deletes old records of sandboxes that this node no longer knows: they were destroyed, or belong to another node. */
  async prune(before: Date): Promise<void> {
    for (const sandboxId of this.#table.orphans()) {
      if (!this.#table.isOpen) return;
      this.#table.removeBefore(sandboxId, before);
      // Other work of the node goes between the logs of two sandboxes.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Writes what is pending. Call before the database is closed. */
  [Symbol.dispose](): void {
    this.#cancelWrite?.();
    this.#writeAll();
  }

  #add(record: FlowRecord, { tenant }: FlowOwner): void {
    const replaces = this.#pending.get(record.id)?.replaces ?? this.#open.get(record.id);
    this.#pending.delete(record.id);
    this.#pending.set(record.id, { cursor: this.#nextCursor(), replaces, tenant, record });
    if (this.#pending.size > MAX_PENDING) this.#lose();
    this.#cancelWrite ??= this.#clock.schedule(WRITE_DELAY_MS, () => this.#writeSome());
  }

  #lose(): void {
    const [oldest] = this.#pending.values().take(1);
    if (oldest === undefined) return;
    const { tenant, record } = oldest;
    this.#pending.delete(record.id);
    this.#lost.set(record.sandboxId, { tenant, count: (this.#lost.get(record.sandboxId)?.count ?? 0) + 1 });
  }

  #nextCursor(): number {
    this.#newestCursor = Math.max(this.#newestCursor + 1, this.#clock.now().getTime() * CURSORS_PER_MS);
    return this.#newestCursor;
  }

  #writeAll(): void {
    while (this.#pending.size > 0 && this.#table.isOpen) if (!this.#write()) return;
  }

  #writeSome(): void {
    this.#cancelWrite = undefined;
    if (!this.#table.isOpen) return;
    const delayMs = this.#write() ? NEXT_WRITE_DELAY_MS : WRITE_DELAY_MS;
    if (this.#pending.size > 0) this.#cancelWrite ??= this.#clock.schedule(delayMs, () => this.#writeSome());
  }

  /** No caller handles its errors, and a full disk must not stop the node. The next write retries the records. */
  #write(): boolean {
    const batch = [...this.#pending.values().take(ROWS_PER_WRITE)];
    try {
      this.#table.write(batch, this.#lost);
      this.#lost.clear();
    } catch (thrown) {
      this.#options.onError?.(SandboxError.from(thrown));
      return false;
    }
    for (const { cursor, record } of batch) {
      this.#pending.delete(record.id);
      if (record.endedAt === null) this.#open.set(record.id, cursor);
      else this.#open.delete(record.id);
    }
    for (const sandboxId of new Set(batch.map(({ record }) => record.sandboxId))) {
      for (const follower of this.#followers.get(sandboxId) ?? []) follower.wake();
    }
    for (const listener of this.#listeners) listener(batch);
    return true;
  }

  /** Connections do not outlive the process that served them. */
  #endAbandoned(): void {
    const endedAt = this.#clock.now().toISOString();
    const writes = this.#table.open().map(({ cursor: replaces, tenant, record }) => ({
      cursor: this.#nextCursor(),
      replaces,
      tenant,
      record: { ...record, endedAt, reason: "node_restarted" as const },
    }));
    if (writes.length > 0) this.#table.write(writes);
  }

  #follow(sandboxId: SandboxId, signal: AbortSignal): Follower & Disposable {
    let waiting = Promise.withResolvers<void>();
    const wake = () => waiting.resolve();
    const follower = {
      isEnded: false,
      wake,
      end() {
        this.isEnded = true;
        wake();
      },
      /** A change since the last call counts. */
      async next() {
        await waiting.promise;
        waiting = Promise.withResolvers();
      },
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", wake);
        followers.delete(follower);
        if (followers.size === 0) this.#followers.delete(sandboxId);
      },
    };
    const followers = this.#followers.get(sandboxId) ?? new Set();
    followers.add(follower);
    this.#followers.set(sandboxId, followers);
    signal.addEventListener("abort", wake);
    return follower;
  }
}

/** A reader of the log of one sandbox. */
interface Follower {
  readonly isEnded: boolean;
  wake(): void;
  end(): void;
  /** Resolves when there may be more to read. */
  next(): Promise<void>;
}
