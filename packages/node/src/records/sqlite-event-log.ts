import { type Clock, systemClock } from "@sandpiper/core";
import type { EventBody } from "@sandpiper/protocol";
import { BoundedRows } from "./bounded-rows.ts";
import type { NodeDatabase } from "./database.ts";
import type { EventLog, EventQuery, NewEvent } from "./event-log.ts";

const DEFAULT_MAX_EVENTS = 100_000;
const ROWS_PER_READ = 256;

const ADD = `INSERT INTO events (at, kind, tenant, sandboxId, details)
  VALUES (:at, :kind, :tenant, :sandboxId, :details)`;

export interface EventLogOptions {
  readonly clock?: Clock | undefined;
  readonly maxEvents?: number | undefined;
}

/** `tenant` is null for events of the node itself. */
type EventListener = (event: EventBody, tenant: string | null) => void;

/** A reader that has read all events and waits for the next. */
interface WaitingReader {
  readonly query: EventQuery;
  wake(): void;
}

/** The newest events. Emitted events survive a kill -9, and their ids are never reused. */
export class SqliteEventLog implements EventLog {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;
  readonly #rows: BoundedRows;
  readonly #waiting = new Set<WaitingReader>();
  readonly #listeners = new Set<EventListener>();

  constructor(database: NodeDatabase, options: EventLogOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#rows = new BoundedRows(database, "events", options.maxEvents ?? DEFAULT_MAX_EVENTS);
  }

  /** The id of the newest event; 0 if there was never one. */
  get newestId(): number {
    return this.#rows.newestId;
  }

  emit({ kind, tenant, sandboxId, details = {} }: NewEvent): EventBody {
    const at = this.#clock.now();
    const row = { at: at.getTime(), kind, tenant, sandboxId, details: JSON.stringify(details) };
    const id = Number(this.#database.prepare(ADD).run(row).lastInsertRowid);
    this.#rows.added(id);
    const event: EventBody = { id, at: at.toISOString(), kind, sandboxId, details };
    for (const reader of this.#waiting) {
      if (matches(reader.query, tenant, event)) reader.wake();
    }
    for (const listener of this.#listeners) listener(event, tenant);
    return event;
  }

  list({ tenant, sandboxId, after, limit }: EventQuery & { readonly limit: number }): readonly EventBody[] {
    const conditions = ["id > :after"];
    const values: Record<string, string | number> = { after: Math.max(after, this.#rows.floor), limit };
    for (const [column, value] of Object.entries({ tenant, sandboxId })) {
      if (value === undefined) continue;
      conditions.push(`${column} = :${column}`);
      values[column] = value;
    }
    return this.#database
      .prepare(`SELECT * FROM events WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT :limit`)
      .all(values)
      .map(eventFromRow);
  }

  /** Reads from the table, so a slow reader needs no memory. */
  async *follow(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventBody, void, undefined> {
    // An id from a database that was replaced may be higher than the newest one here.
    let after = Math.min(query.after, this.#rows.newestId);
    while (!signal.aborted) {
      const events = this.list({ ...query, after, limit: ROWS_PER_READ });
      for (const event of events) {
        if (signal.aborted) return;
        after = event.id;
        yield event;
      }
      if (events.length === 0) await this.#next(query, signal);
    }
  }

  /** Calls the listener with each stored event. Its errors reach the caller of `emit`. */
  subscribe(listener: EventListener): Disposable {
    // A wrapper, so that the same function can subscribe twice.
    const wrapper: EventListener = (event, tenant) => listener(event, tenant);
    this.#listeners.add(wrapper);
    return { [Symbol.dispose]: () => void this.#listeners.delete(wrapper) };
  }

  #next(query: EventQuery, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(reader);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const reader = { query, wake };
      this.#waiting.add(reader);
      signal.addEventListener("abort", wake);
    });
  }
}

function matches(query: EventQuery, tenant: string | null, { sandboxId }: EventBody): boolean {
  if (query.tenant !== undefined && query.tenant !== tenant) return false;
  return query.sandboxId === undefined || query.sandboxId === sandboxId;
}

function eventFromRow(row: Record<string, unknown>): EventBody {
  const fields = row as Record<keyof EventBody, never>;
  return {
    id: fields.id,
    at: new Date(fields.at).toISOString(),
    kind: fields.kind,
    sandboxId: fields.sandboxId,
    details: JSON.parse(fields.details),
  };
}
