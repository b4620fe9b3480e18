import type { AuditEntry } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import { type AuditChain, entryStatement, headStatement } from "./audit-chain.ts";
import type { AuditRotation } from "./audit-rotation.ts";

/** A row of `auditEntries`. */
export interface AuditRow extends Omit<AuditEntry, "at" | "notRecorded"> {
  readonly at: number;
  readonly notRecorded: string | null;
  readonly mac: string | null;
}

export interface AuditHead {
  readonly id: number;
  readonly mac: string;
  readonly seal: string;
}

export function entryFromRow(row: AuditRow): AuditEntry {
  const { id, actor, tenant, operation, sandboxId, status, requestId } = row;
  const notRecorded = row.notRecorded === null ? {} : { notRecorded: JSON.parse(row.notRecorded) };
  const at = new Date(row.at).toISOString();
  return { id, at, actor, tenant, operation, sandboxId, status, requestId, ...notRecorded };
}

export function readHead(database: NodeDatabase): AuditHead | undefined {
  return database.prepare("SELECT * FROM auditHead").get() as unknown as AuditHead | undefined;
}

/**
 * The entry after which the chain continues. A database from before the chain is chained as it is. A head that somebody
 * removed is not recreated: the next entry then starts a new chain, and the verification reports it.
 */
export function startChain(
  database: NodeDatabase,
  chain: AuditChain,
  rotation: Pick<AuditRotation, "write">,
): { readonly id: number; readonly mac: string } {
  const head = readHead(database);
  const newest = Math.max(
    Number(database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'auditEntries'").get()?.["seq"] ?? 0),
    head?.id ?? 0,
  );
  if (head !== undefined) return { id: newest, mac: head.mac };
  const chained = database.prepare("SELECT id FROM auditEntries WHERE mac IS NOT NULL LIMIT 1").get();
  if (newest === 0 || chained !== undefined) return { id: newest, mac: "" };
  return database.transaction(() => chainExisting(database, { chain, rotation, newest }));
}

function chainExisting(
  database: NodeDatabase,
  { chain, rotation, newest }: { chain: AuditChain; rotation: Pick<AuditRotation, "write">; newest: number },
) {
  const rows = database.prepare("SELECT * FROM auditEntries ORDER BY id").all() as unknown as AuditRow[];
  let mac = "";
  let last = 0;
  const skip = (toId: number) => {
    if (toId > last) rotation.write({ fromId: last + 1, toId, mac });
  };
  for (const row of rows) {
    skip(row.id - 1);
    mac = chain.sign(entryStatement(entryFromRow(row), mac));
    database.prepare("UPDATE auditEntries SET mac = :mac WHERE id = :id").run({ mac, id: row.id });
    last = row.id;
  }
  skip(newest);
  database
    .prepare("INSERT INTO auditHead (one, id, mac, seal) VALUES (1, :id, :mac, :seal)")
    .run({ id: newest, mac, seal: chain.sign(headStatement({ id: newest, mac })) });
  return { id: newest, mac };
}
