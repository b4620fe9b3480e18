import type { LockView } from "@sandpiper/core";
import type { ListSandboxesQuery, SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import { recordAtRest } from "../ownership/saved-sandbox.ts";
import { parseCursor } from "../records/page-cursor.ts";
import type { SandboxFilter, SandboxRecord } from "../records/sandbox-record.ts";
import { sandboxFilter } from "../sandboxes/sandbox-filter.ts";

const PARALLEL_READS = 16;

export interface StoredSandboxesOptions {
  /** The records in the store, including those of running sandboxes. */
  readonly saved: { list(): Promise<readonly SandboxRecord[]> };
  readonly leases: { read(id: SandboxId): Promise<LockView | undefined> };
  readonly nodeId: string;
  /** `owner` is null for a sandbox at rest. */
  readonly describe: (principal: Principal, record: SandboxRecord, owner: string | null) => SandboxResource;
}

interface ListOptions {
  /** Sandboxes that some node has listed. */
  readonly except: ReadonlySet<string>;
  /** The ids of the other nodes that listed theirs. */
  readonly answered: ReadonlySet<string>;
  /** Older sandboxes do not fit on the page. */
  readonly sinceMs: number;
}

interface StoredPage {
  readonly items: readonly SandboxResource[];
  readonly isMore: boolean;
}

/** Lists sandboxes that no other node lists: those at rest, and those of nodes that have no URL or do not respond. */
export class StoredSandboxes {
  readonly #options: StoredSandboxesOptions;

  constructor(options: StoredSandboxesOptions) {
    this.#options = options;
  }

  /** Newest first. Reads locks only for sandboxes that may be on the page. */
  async list(principal: Principal, query: ListSandboxesQuery, options: ListOptions): Promise<StoredPage> {
    const { except, answered, sinceMs } = options;
    const { saved, describe } = this.#options;
    const filter = sandboxFilter(principal, query);
    const matching = (await saved.list())
      .filter((record) => !except.has(record.id))
      .filter((record) => matches(record, filter) || matches(recordAtRest(record), filter))
      .sort(newestFirst);
    const candidates = await this.#afterCursor(matching, filter.cursor, answered);
    const eligible = candidates.filter(({ createdAt }) => createdAt.getTime() >= sinceMs);
    const items: SandboxResource[] = [];
    let next = 0;
    for (; next < eligible.length && items.length < filter.limit; next += PARALLEL_READS) {
      const batch = eligible.slice(next, next + PARALLEL_READS);
      const owners = await Promise.all(batch.map(({ id }) => this.#ownerOf(id, answered)));
      for (const [index, saved] of batch.entries()) {
        const owner = owners[index];
        if (owner === undefined) continue;
        const record = owner === null ? recordAtRest(saved) : saved;
        if (matches(record, filter)) items.push(describe(principal, record, owner));
      }
    }
    return { items, isMore: next < eligible.length || eligible.length < candidates.length };
  }

  /** Null at rest. Undefined if a node lists the sandbox, or if it has just been destroyed. */
  async #ownerOf(id: SandboxId, answered: ReadonlySet<string>): Promise<string | null | undefined> {
    const { leases, nodeId } = this.#options;
    const lock = await leases.read(id);
    if (lock === undefined) return undefined;
    if (!lock.isLive) return null;
    const { owner } = lock;
    return owner !== null && (owner === nodeId || answered.has(owner)) ? undefined : owner;
  }

  /** Of sandboxes created at the cursor's instant, some are left for this page only if this class listed the cursor's. */
  async #afterCursor(
    records: readonly SandboxRecord[],
    text: string | undefined,
    answered: ReadonlySet<string>,
  ): Promise<readonly SandboxRecord[]> {
    if (text === undefined) return records;
    const { createdAtMs, id } = parseCursor(text);
    const isAtInstant = ({ createdAt }: SandboxRecord) => createdAt.getTime() === createdAtMs;
    const wasListed = records.some(isAtInstant) && (await this.#ownerOf(id, answered)) !== undefined;
    return records.filter((record) =>
      isAtInstant(record) ? wasListed && record.id < id : record.createdAt.getTime() < createdAtMs,
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
