import type { LockView } from "@sandpiper/core";
import type { ListSandboxesQuery, SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import { recordAtRest } from "../ownership/saved-sandbox.ts";
import { parseCursor } from "../records/page-cursor.ts";
import type { SandboxFilter, SandboxRecord } from "../records/sandbox-record.ts";
import { sandboxFilter } from "../sandboxes/sandbox-filter.ts";

const LOOKS_AT_ONCE = 16;

export interface SandboxesAtRestOptions {
  /** As the store has them, those that run among them. */
  readonly saved: { list(): Promise<readonly SandboxRecord[]> };
  readonly leases: { read(id: SandboxId): Promise<LockView | undefined> };
  readonly describe: (principal: Principal, record: SandboxRecord) => SandboxResource;
}

interface ListAtRestOptions {
  /** Those that a node has named. */
  readonly except: ReadonlySet<string>;
  /** Older ones have no room on the page. */
  readonly sinceMs: number;
}

interface AtRestPage {
  readonly items: readonly SandboxResource[];
  readonly isMore: boolean;
}

/** The sandboxes that no node has: saved and given back, or left behind by a node that died. */
export class SandboxesAtRest {
  readonly #options: SandboxesAtRestOptions;

  constructor(options: SandboxesAtRestOptions) {
    this.#options = options;
  }

  /** Newest first. Whether a node has one is looked up only for those that may be on the page. */
  async list(
    principal: Principal,
    query: ListSandboxesQuery,
    { except, sinceMs }: ListAtRestOptions,
  ): Promise<AtRestPage> {
    const { saved, describe } = this.#options;
    const filter = sandboxFilter(principal, query);
    const fitting = (await saved.list())
      .map(recordAtRest)
      .filter((record) => !except.has(record.id) && fits(record, filter))
      .sort(newestFirst);
    const candidates = await this.#afterCursor(fitting, filter.cursor);
    const inReach = candidates.filter(({ createdAt }) => createdAt.getTime() >= sinceMs);
    const records: SandboxRecord[] = [];
    let at = 0;
    for (; at < inReach.length && records.length < filter.limit; at += LOOKS_AT_ONCE) {
      const some = inReach.slice(at, at + LOOKS_AT_ONCE);
      const areAtRest = await Promise.all(some.map(({ id }) => this.#isAtRest(id)));
      records.push(...some.filter((_, place) => areAtRest[place]));
    }
    const items = records.map((record) => describe(principal, record));
    return { items, isMore: at < inReach.length || inReach.length < candidates.length };
  }

  /** Without a lock it was destroyed a moment ago. */
  async #isAtRest(id: SandboxId): Promise<boolean> {
    const lock = await this.#options.leases.read(id);
    return lock !== undefined && !lock.isLive;
  }

  /** Those of the instant at which the page before ended were all on it, unless it was full of them. */
  async #afterCursor(records: readonly SandboxRecord[], text: string | undefined): Promise<readonly SandboxRecord[]> {
    if (text === undefined) return records;
    const { createdAtMs, id } = parseCursor(text);
    const isOfOneInstant = ({ createdAt }: SandboxRecord) => createdAt.getTime() === createdAtMs;
    const wasAtRest = records.some(isOfOneInstant) && (await this.#isAtRest(id));
    return records.filter((record) =>
      isOfOneInstant(record) ? wasAtRest && record.id < id : record.createdAt.getTime() < createdAtMs,
    );
  }
}

function fits(record: SandboxRecord, { tenant, state, provider, name, labels = [] }: SandboxFilter): boolean {
  const wanted = Object.entries({ tenant, state, provider, name }) as ["tenant", string | undefined][];
  return (
    wanted.every(([field, value]) => value === undefined || record[field] === value) &&
    labels.every(
      ({ key, value }) => Object.hasOwn(record.labels, key) && (value === null || record.labels[key] === value),
    )
  );
}

function newestFirst(one: SandboxRecord, other: SandboxRecord): number {
  return other.createdAt.getTime() - one.createdAt.getTime() || (one.id < other.id ? 1 : -1);
}
