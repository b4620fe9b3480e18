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

/** Reads from the table and sleeps when it has read everything. */
interface Sleeper {
  readonly query: EventQuery;
  wake(): void;
}

/** The newest events. One that was emitted is there also after a kill -9, and its id is never given again. */
export class SqliteEventLog implements EventLog {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;
  readonly #rows: BoundedRows;
  readonly #sleepers = new Set<Sleeper>();
  readonly #listeners = new Set<(event: EventBody) => void>();

  constructor(database: NodeDatabase, options: EventLogOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#rows = new BoundedRows(database, "events", options.maxEvents ?? DEFAULT_MAX_EVENTS);
  }

  /** The id of the newest event; 0 when there was none ever. */
  get newestId(): number {
    return this.#rows.newestId;
  }

  emit({ kind, tenant, sandboxId, details = {} }: NewEvent): EventBody {
    const at = this.#clock.now();
    const row = { at: at.getTime(), kind, tenant, sandboxId, details: JSON.stringify(details) };
    const id = Number(this.#database.prepare(ADD).run(row).lastInsertRowid);
    this.#rows.added(id);
    const event: EventBody = { id, at: at.toISOString(), kind, sandboxId, details };
    for (const sleeper of this.#sleepers) {
      if (fits(sleeper.query, tenant, event)) sleeper.wake();
    }
    for (const listener of this.#listeners) listener(event);
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

  /** A slow reader holds nothing in memory: it finds in the table what happened meanwhile. */
  async *follow(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventBody, void, undefined> {
    // Ids from before the database was replaced may be ahead of it.
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

  /** Told of each event once it is stored. What it throws reaches whoever emitted the event. */
  subscribe(listener: (event: EventBody) => void): Disposable {
    const own = (event: EventBody) => listener(event);
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  #next(query: EventQuery, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { query, wake };
      this.#sleepers.add(sleeper);
      signal.addEventListener("abort", wake);
    });
  }
}

function fits(query: EventQuery, tenant: string | null, { sandboxId }: EventBody): boolean {
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
