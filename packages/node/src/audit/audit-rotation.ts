import type { NodeDatabase } from "../records/database.ts";
import { type AuditChain, type RotatedRange, rotatedStatement } from "./audit-chain.ts";

/** Removing many rows at once costs little more than removing one. */
const ROWS_PER_REMOVAL = 100;

/** The part of the log that tenants cannot take from operators and from anonymous callers, who each have one. */
const RESERVED_PART = 0.1;

/** Whose rows compete for room: one share for each tenant. */
export type AuditShare = "operators" | "anonymous" | `tenant:${string}`;

interface StoredRow {
  readonly id: number;
  readonly mac: string;
}

/**
 * Bounds the audit log. When it is full, the share with the most rows loses its oldest ones, so that no tenant removes
 * the rows of another. Ranges of removed rows are signed, so that the chain stays verifiable.
 */
export class AuditRotation {
  readonly #database: NodeDatabase;
  readonly #chain: AuditChain;
  readonly #maxRows: number;
  readonly #counts = new Map<string, number>();

  constructor(database: NodeDatabase, chain: AuditChain, maxRows: number) {
    this.#database = database;
    this.#chain = chain;
    this.#maxRows = maxRows;
    this.recount();
  }

  /** Reads the counts again, after a transaction failed. */
  recount(): void {
    this.#counts.clear();
    const rows = this.#database.prepare("SELECT share, count(*) AS count FROM auditEntries GROUP BY share").all();
    for (const { share, count } of rows) this.#counts.set(String(share), Number(count));
  }

  added(share: AuditShare): void {
    this.#counts.set(share, (this.#counts.get(share) ?? 0) + 1);
  }

  /** Call in the transaction that added rows. */
  removeSurplus(): void {
    let surplus = this.#counts.values().reduce((sum, count) => sum + count, 0) - this.#maxRows;
    if (surplus < Math.min(ROWS_PER_REMOVAL, this.#maxRows / 10)) return;
    while (surplus > 0) {
      const [largest, second] = this.#claims();
      if (largest === undefined) return;
      const count = Math.min(surplus, Math.max(1, Math.ceil(largest.claim - (second?.claim ?? 0))));
      surplus -= this.#removeOldest(largest.share, count);
    }
  }

  /** By the number of rows beyond the reserved ones, largest first. */
  #claims(): readonly { readonly share: string; readonly claim: number }[] {
    const reserved = Math.floor(this.#maxRows * RESERVED_PART);
    return [...this.#counts]
      .map(([share, count]) => ({ share, claim: share.startsWith("tenant:") ? count : count - reserved }))
      .toSorted((one, other) => other.claim - one.claim);
  }

  #removeOldest(share: string, limit: number): number {
    const rows = this.#database
      .prepare("SELECT id, mac FROM auditEntries WHERE share = :share ORDER BY id LIMIT :limit")
      .all({ share, limit }) as unknown as StoredRow[];
    for (const range of rangesOf(rows)) this.#remember(range);
    const remove = this.#database.prepare("DELETE FROM auditEntries WHERE id = :id");
    for (const { id } of rows) remove.run({ id });
    const left = (this.#counts.get(share) ?? 0) - rows.length;
    if (left > 0 && rows.length > 0) this.#counts.set(share, left);
    else this.#counts.delete(share);
    return Math.max(rows.length, 1);
  }

  /** Adjacent ranges become one, so that there are never more ranges than rows. A forged range stays visible. */
  #remember(range: RotatedRange): void {
    const before = this.#genuine("SELECT * FROM auditRotated WHERE toId = :id", range.fromId - 1);
    const after = this.#genuine("SELECT * FROM auditRotated WHERE fromId = :id", range.toId + 1);
    for (const { toId } of [before, after].filter((found) => found !== undefined)) {
      this.#database.prepare("DELETE FROM auditRotated WHERE toId = :toId").run({ toId });
    }
    this.write({
      fromId: before?.fromId ?? range.fromId,
      toId: after?.toId ?? range.toId,
      mac: after?.mac ?? range.mac,
    });
  }

  #genuine(sql: string, id: number): RotatedRange | undefined {
    const row = this.#database.prepare(sql).get({ id }) as unknown as (RotatedRange & { seal: string }) | undefined;
    return row !== undefined && this.#chain.verify(row.seal, rotatedStatement(row)) === "genuine" ? row : undefined;
  }

  write({ fromId, toId, mac }: RotatedRange): void {
    const seal = this.#chain.sign(rotatedStatement({ fromId, toId, mac }));
    this.#database
      .prepare("INSERT OR REPLACE INTO auditRotated (fromId, toId, mac, seal) VALUES (:fromId, :toId, :mac, :seal)")
      .run({ fromId, toId, mac, seal });
  }
}

/** Groups rows with consecutive ids. */
function rangesOf(rows: readonly StoredRow[]): readonly RotatedRange[] {
  const ranges: RotatedRange[] = [];
  for (const { id, mac } of rows) {
    const last = ranges.at(-1);
    if (last?.toId === id - 1) ranges[ranges.length - 1] = { fromId: last.fromId, toId: id, mac };
    else ranges.push({ fromId: id, toId: id, mac });
  }
  return ranges;
}
