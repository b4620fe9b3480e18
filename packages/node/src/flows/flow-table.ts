import type { FlowRecord, SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import type { FlowEntry, FlowPage, FlowQuery } from "./flow-entry.ts";

/** With the requests of a connection cut to this, a log of 10,000 records stays below 160 MB. */
const MAX_RECORD_CHARACTERS = 16 * 1024;

const ADD = `INSERT INTO flowRecords (cursor, sandboxId, at, isDenied, isOpen, class, record)
  VALUES (:cursor, :sandboxId, :at, :isDenied, :isOpen, :class, :record)`;
const REMOVE = "DELETE FROM flowRecords WHERE cursor = :cursor RETURNING class";
const REMOVE_OLDEST = `DELETE FROM flowRecords WHERE cursor IN
  (SELECT cursor FROM flowRecords WHERE sandboxId = :sandboxId AND class = :class ORDER BY cursor LIMIT :surplus)`;
const SET_LOG = `INSERT INTO flowLogs (sandboxId, tenant, dropped) VALUES (:sandboxId, :tenant, :dropped)
  ON CONFLICT (sandboxId) DO UPDATE SET dropped = :dropped`;
const LIST = `SELECT cursor, record FROM flowRecords
  WHERE sandboxId = :sandboxId AND cursor > :after AND isDenied >= :minDenied AND at >= :sinceMs`;

export interface FlowTableOptions {
  readonly maxPerSandbox: number;
  readonly maxPerTenant: number;
}

export interface FlowWrite extends FlowEntry {
  /** The cursor of the row that this one replaces. */
  readonly replaces?: number | undefined;
}

/** How many records of each sandbox were never written. */
export type LostRecords = ReadonlyMap<SandboxId, { readonly tenant: string; readonly count: number }>;

/** Denials, and of what was allowed, connections and queries. */
type FlowClass = "denied" | "flow" | "query";

interface Log {
  readonly tenant: string;
  readonly counts: Record<FlowClass, number>;
  dropped: number;
}

/**
 * The newest flow records of each sandbox. A sandbox that fills its tenant's share loses its own oldest records, and of those
 * the class with the most: a flood of queries does not remove the trace of a denial.
 */
export class FlowTable {
  readonly #database: NodeDatabase;
  readonly #options: FlowTableOptions;
  #logs = new Map<SandboxId, Log>();
  /** The number of records of each tenant. */
  #tenants = new Map<string, number>();

  constructor(database: NodeDatabase, options: FlowTableOptions) {
    this.#database = database;
    this.#options = options;
    this.#count();
  }

  /** The highest cursor that was ever written and is not dropped. */
  get newestCursor(): number {
    return Number(this.#database.prepare("SELECT max(cursor) AS newest FROM flowRecords").get()?.["newest"] ?? 0);
  }

  get isOpen(): boolean {
    return this.#database.isOpen;
  }

  write(writes: readonly FlowWrite[], lost: LostRecords = new Map()): void {
    try {
      this.#database.transaction(() => {
        for (const write of writes) this.#add(write);
        for (const [id, { tenant, count }] of lost) this.#countDropped(id, this.#logOf(id, tenant), count);
        const touched = new Set(writes.map(({ record }) => record.sandboxId));
        for (const sandboxId of touched) this.#bound(sandboxId);
      });
    } catch (thrown) {
      this.#count();
      throw thrown;
    }
  }

  /** Oldest first; with `newest`, the last ones. */
  list(sandboxId: SandboxId, query: FlowQuery & { readonly limit: number; readonly newest?: boolean }): FlowPage {
    const { after = 0, deniedOnly = false, since, limit, newest = false } = query;
    const { tenant = "", dropped = 0 } = this.#logs.get(sandboxId) ?? {};
    const values = { sandboxId, after, minDenied: deniedOnly ? 1 : 0, sinceMs: since?.getTime() ?? 0, limit };
    const rows = this.#database
      .prepare(`${LIST} ORDER BY cursor ${newest ? "DESC" : "ASC"} LIMIT :limit`)
      .all(values)
      .map((row) => ({ cursor: Number(row["cursor"]), tenant, record: recordOf(row["record"]) }));
    return { entries: newest ? rows.reverse() : rows, dropped };
  }

  /** What a process that ended left open. */
  open(): readonly FlowEntry[] {
    const rows = this.#database.prepare("SELECT cursor, record FROM flowRecords WHERE isOpen = 1").all();
    return rows.map((row) => {
      const record = recordOf(row["record"]);
      const tenant = this.#logs.get(record.sandboxId)?.tenant ?? "";
      return { cursor: Number(row["cursor"]), tenant, record };
    });
  }

  /** Sandboxes with records of which this node knows nothing else. */
  orphans(): readonly SandboxId[] {
    const sql = "SELECT sandboxId FROM flowLogs WHERE sandboxId NOT IN (SELECT id FROM sandboxes)";
    const rows = this.#database.prepare(sql).all();
    return rows.map(({ sandboxId }) => sandboxId as SandboxId);
  }

  /** Deletes what a sandbox did before an instant. */
  removeBefore(sandboxId: SandboxId, before: Date): void {
    const log = this.#logs.get(sandboxId);
    if (log === undefined) return;
    this.#database.transaction(() => {
      const values = { sandboxId, before: before.getTime() };
      const sql = "DELETE FROM flowRecords WHERE sandboxId = :sandboxId AND at < :before";
      this.#database.prepare(sql).run(values);
      this.#recount(sandboxId, log);
      if (sizeOf(log) > 0) return;
      this.#database.prepare("DELETE FROM flowLogs WHERE sandboxId = :sandboxId").run({ sandboxId });
      this.#logs.delete(sandboxId);
    });
  }

  #add({ cursor, replaces, tenant, record }: FlowWrite): void {
    const { sandboxId } = record;
    const log = this.#logOf(sandboxId, tenant);
    if (replaces !== undefined) {
      const removed = this.#database.prepare(REMOVE).get({ cursor: replaces });
      if (removed !== undefined) this.#grow(log, removed["class"] as FlowClass, -1);
    }
    this.#database.prepare(ADD).run({
      cursor,
      sandboxId,
      at: Date.parse(record.at),
      isDenied: record.decision === "denied" ? 1 : 0,
      isOpen: record.endedAt === null ? 1 : 0,
      class: classOf(record),
      record: textOf(record),
    });
    this.#grow(log, classOf(record), 1);
  }

  #bound(sandboxId: SandboxId): void {
    const { maxPerSandbox, maxPerTenant } = this.#options;
    const log = this.#logs.get(sandboxId) as Log;
    this.#drop(sandboxId, log, sizeOf(log) - maxPerSandbox);
    let surplus = (this.#tenants.get(log.tenant) ?? 0) - maxPerTenant;
    if (surplus <= 0) return;
    const ofTenant = [...this.#logs].filter(([, { tenant }]) => tenant === log.tenant);
    while (surplus > 0) {
      const [victim, longest] = ofTenant.reduce((most, each) => (sizeOf(each[1]) > sizeOf(most[1]) ? each : most));
      const share = Math.min(surplus, Math.max(1, Math.ceil(sizeOf(longest) / 100)));
      this.#drop(victim, longest, share);
      surplus -= share;
    }
  }

  #drop(sandboxId: SandboxId, log: Log, surplus: number): void {
    if (surplus <= 0) return;
    for (const [name, removed] of Object.entries(sharesOf(log.counts, surplus)) as [FlowClass, number][]) {
      if (removed === 0) continue;
      this.#database.prepare(REMOVE_OLDEST).run({ sandboxId, class: name, surplus: removed });
      this.#grow(log, name, -removed);
    }
    this.#countDropped(sandboxId, log, surplus);
  }

  #countDropped(sandboxId: SandboxId, log: Log, records: number): void {
    log.dropped += records;
    this.#database.prepare(SET_LOG).run({ sandboxId, tenant: log.tenant, dropped: log.dropped });
  }

  #logOf(sandboxId: SandboxId, tenant: string): Log {
    const known = this.#logs.get(sandboxId);
    if (known !== undefined) return known;
    const log = emptyLog(tenant, 0);
    this.#logs.set(sandboxId, log);
    this.#database.prepare(SET_LOG).run({ sandboxId, tenant, dropped: 0 });
    return log;
  }

  #grow(log: Log, name: FlowClass, records: number): void {
    log.counts[name] += records;
    this.#tenants.set(log.tenant, (this.#tenants.get(log.tenant) ?? 0) + records);
  }

  #recount(sandboxId: SandboxId, log: Log): void {
    const sql = "SELECT class, count(*) AS count FROM flowRecords WHERE sandboxId = :sandboxId GROUP BY class";
    for (const name of Object.keys(log.counts) as FlowClass[]) this.#grow(log, name, -log.counts[name]);
    for (const row of this.#database.prepare(sql).all({ sandboxId })) {
      this.#grow(log, row["class"] as FlowClass, Number(row["count"]));
    }
  }

  #count(): void {
    this.#logs = new Map();
    this.#tenants = new Map();
    for (const row of this.#database.prepare("SELECT sandboxId, tenant, dropped FROM flowLogs").all()) {
      const log = emptyLog(row["tenant"] as string, Number(row["dropped"]));
      this.#logs.set(row["sandboxId"] as SandboxId, log);
      this.#recount(row["sandboxId"] as SandboxId, log);
    }
  }
}

function emptyLog(tenant: string, dropped: number): Log {
  return { tenant, counts: { denied: 0, flow: 0, query: 0 }, dropped };
}

function sizeOf({ counts: { denied, flow, query } }: Log): number {
  return denied + flow + query;
}

/** How many records each class loses: the largest ones down to a common level. */
function sharesOf(counts: Log["counts"], surplus: number): Log["counts"] {
  const rest = { ...counts };
  for (let removed = 0; removed < surplus; removed += 1) {
    const most = Math.max(rest.denied, rest.flow, rest.query);
    rest[rest.query === most ? "query" : rest.flow === most ? "flow" : "denied"] -= 1;
  }
  return { denied: counts.denied - rest.denied, flow: counts.flow - rest.flow, query: counts.query - rest.query };
}

function classOf({ decision, kind }: FlowRecord): FlowClass {
  if (decision === "denied") return "denied";
  return kind === "query" ? "query" : "flow";
}

function textOf(record: FlowRecord): string {
  const text = JSON.stringify(record);
  if (text.length <= MAX_RECORD_CHARACTERS || (record.requests ?? []).length === 0) return text;
  const { requests = [] } = record;
  return textOf({ ...record, requests: requests.slice(0, Math.floor(requests.length / 2)) });
}

function recordOf(text: unknown): FlowRecord {
  return JSON.parse(text as string) as FlowRecord;
}
