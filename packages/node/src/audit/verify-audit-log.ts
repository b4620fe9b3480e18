import { setImmediate as nextTurn } from "node:timers/promises";
import type { AuditFinding, AuditVerification } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import { type AuditChain, entryStatement, headStatement, type RotatedRange, rotatedStatement } from "./audit-chain.ts";
import { type AuditRow, entryFromRow, readHead } from "./audit-rows.ts";
import { VerificationReport } from "./verification-report.ts";

/** Few enough that other requests do not notice the work. */
const ROWS_PER_TURN = 200;

const RANGES = "SELECT * FROM auditRotated WHERE toId > :after AND toId < :before ORDER BY toId";

/**
 * Verifies the chain from the first entry to the head. A removed or changed entry, or one that was added by another
 * program, is a finding. Entries may be added and rotated meanwhile.
 */
export async function verifyAuditLog(database: NodeDatabase, chain: AuditChain): Promise<AuditVerification> {
  const report = new VerificationReport();
  let last: Link = { id: 0, mac: "" };
  for (;;) {
    const rows = database
      .prepare("SELECT * FROM auditEntries WHERE id > :after ORDER BY id LIMIT :limit")
      .all({ after: last.id, limit: ROWS_PER_TURN }) as unknown as AuditRow[];
    for (const row of rows) {
      const prev = linkBefore(row.id, last, { database, chain, report });
      const entry = entryFromRow(row);
      report.entry(row.id);
      if (prev !== undefined) {
        const verdict = row.mac === null ? "forged" : chain.verify(row.mac, entryStatement(entry, prev));
        if (verdict !== "genuine") report.add(verdict === "forged" ? changed(row.id) : unknownKey(row.id));
      }
      last = { id: row.id, mac: row.mac ?? "" };
    }
    if (rows.length < ROWS_PER_TURN) {
      verifyHead(last, { database, chain, report });
      return report.result();
    }
    await nextTurn();
  }
}

interface Link {
  readonly id: number;
  readonly mac: string;
}

interface Context {
  readonly database: NodeDatabase;
  readonly chain: AuditChain;
  readonly report: VerificationReport;
}

/** The code of the entry before `id`; undefined if a gap hides it. */
function linkBefore(id: number, last: Link, { database, chain, report }: Context): string | undefined {
  let next = last.id + 1;
  let mac: string | undefined = last.mac;
  const ranges = next === id ? [] : database.prepare(RANGES).all({ after: last.id, before: id });
  for (const range of ranges as unknown as (RotatedRange & { seal: string })[]) {
    if (chain.verify(range.seal, rotatedStatement(range)) !== "genuine") continue;
    if (range.fromId > next) report.add(missing(next, range.fromId - 1));
    report.rotated += range.toId + 1 - Math.max(range.fromId, next);
    next = range.toId + 1;
    mac = range.mac;
  }
  if (next === id) return mac;
  report.add(missing(next, id - 1));
  return undefined;
}

function verifyHead(last: Link, context: Context): void {
  const { database, chain, report } = context;
  const head = readHead(database);
  if (head === undefined) {
    if (last.id > 0) report.add(badHead(last.id, "the record of the newest entry is missing"));
    return;
  }
  if (chain.verify(head.seal, headStatement(head)) !== "genuine") {
    report.add(badHead(head.id, "the record of the newest entry was changed"));
    return;
  }
  const mac = head.id > last.id ? linkBefore(head.id + 1, last, context) : last.mac;
  if (mac !== undefined && (head.id < last.id || mac !== head.mac)) {
    report.add(badHead(head.id, `the newest entry is ${last.id}, but the record says ${head.id}`));
  }
}

function missing(fromId: number, toId: number): AuditFinding {
  const what = fromId === toId ? `entry ${fromId} is` : `entries ${fromId} to ${toId} are`;
  return { kind: "missing", fromId, toId, line: null, message: `${what} missing` };
}

function changed(id: number): AuditFinding {
  const message = `entry ${id} was changed, or does not follow the entry before it`;
  return { kind: "changed", fromId: id, toId: id, line: null, message };
}

function unknownKey(id: number): AuditFinding {
  const message = `entry ${id} was signed with a secret that this node does not have`;
  return { kind: "unknown_key", fromId: id, toId: id, line: null, message };
}

function badHead(id: number, message: string): AuditFinding {
  return { kind: "head", fromId: id, toId: id, line: null, message };
}
