import type { LockView } from "@sandpiper/core";
import type { ListSandboxesQuery, SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import { recordAtRest } from "../ownership/saved-sandbox.ts";
import { parseCursor } from "../records/page-cursor.ts";
import type { SandboxFilter, SandboxRecord } from "../records/sandbox-record.ts";
import { sandboxFilter } from "../sandboxes/sandbox-filter.ts";

const PARALLEL_READS = 16;

export interface SandboxesAtRestOptions {
  /** The records in the store, including those of running sandboxes. */
  readonly saved: { list(): Promise<readonly SandboxRecord[]> };
  readonly leases: { read(id: SandboxId): Promise<LockView | undefined> };
  readonly describe: (principal: Principal, record: SandboxRecord) => SandboxResource;
}

interface ListAtRestOptions {
  /** Sandboxes that some node has listed. */
  readonly except: ReadonlySet<string>;
  /** Older sandboxes do not fit on the page. */
  readonly sinceMs: number;
}

interface AtRestPage {
  readonly items: readonly SandboxResource[];
  readonly isMore: boolean;
}

/** Lists sandboxes that no node owns, because their owner released them or died. */
export class SandboxesAtRest {
  readonly #options: SandboxesAtRestOptions;

  constructor(options: SandboxesAtRestOptions) {
    this.#options = options;
  }

  /** Newest first. Reads locks only for sandboxes that may be on the page. */
  async list(
    principal: Principal,
    query: ListSandboxesQuery,
    { except, sinceMs }: ListAtRestOptions,
  ): Promise<AtRestPage> {
    const { saved, describe } = this.#options;
    const filter = sandboxFilter(principal, query);
    const matching = (await saved.list())
      .map(recordAtRest)
      .filter((record) => !except.has(record.id) && matches(record, filter))
      .sort(newestFirst);
    const candidates = await this.#afterCursor(matching, filter.cursor);
    const eligible = candidates.filter(({ createdAt }) => createdAt.getTime() >= sinceMs);
    const records: SandboxRecord[] = [];
    let next = 0;
    for (; next < eligible.length && records.length < filter.limit; next += PARALLEL_READS) {
      const batch = eligible.slice(next, next + PARALLEL_READS);
      const areAtRest = await Promise.all(batch.map(({ id }) => this.#isAtRest(id)));
      records.push(...batch.filter((_, index) => areAtRest[index]));
    }
    const items = records.map((record) => describe(principal, record));
    return { items, isMore: next < eligible.length || eligible.length < candidates.length };
  }

  /** A sandbox without a lock has just been destroyed. */
  async #isAtRest(id: SandboxId): Promise<boolean> {
    const lock = await this.#options.leases.read(id);
    return lock !== undefined && !lock.isLive;
  }

  /** Of sandboxes created at the cursor's instant, some are left for this page only if the cursor's sandbox is one at rest. */
  async #afterCursor(records: readonly SandboxRecord[], text: string | undefined): Promise<readonly SandboxRecord[]> {
    if (text === undefined) return records;
    const { createdAtMs, id } = parseCursor(text);
    const isAtInstant = ({ createdAt }: SandboxRecord) => createdAt.getTime() === createdAtMs;
    const wasAtRest = records.some(isAtInstant) && (await this.#isAtRest(id));
    return records.filter((record) =>
      isAtInstant(record) ? wasAtRest && record.id < id : record.createdAt.getTime() < createdAtMs,
    );
  }
}

function matches(record: SandboxRecord, { tenant, state, provider, name, labels = [] }: SandboxFilter): boolean {
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
