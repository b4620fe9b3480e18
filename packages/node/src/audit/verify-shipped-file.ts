import { type AuditFinding, type AuditVerification, auditEntrySchema } from "@sandpiper/protocol";
import { z } from "zod";
import { type AuditChain, type ChainedEntry, entryStatement } from "./audit-chain.ts";
import { VerificationReport } from "./verification-report.ts";

/** Longer than any line that the node writes. */
const MAX_LINE_CHARACTERS = 256 * 1024;

const shippedEntrySchema = auditEntrySchema.extend({
  type: z.literal("audit"),
  node: z.string(),
  prev: z.string(),
  mac: z.string(),
});

/** Records that are not chained. */
const others: ReadonlySet<unknown> = new Set(["event", "network"]);

export interface VerifyFileOptions {
  readonly chain: AuditChain;
  /** The newest entry of the database; a file that is ahead of it shows that the database was replaced by an older one. */
  readonly newestId: number;
}

/**
 * Verifies the audit entries in files that the node shipped, oldest first. The first entry is the anchor: its code proves
 * that the node wrote it. Other records are not chained.
 */
export async function verifyShippedFile(
  text: AsyncIterable<string>,
  { chain, newestId }: VerifyFileOptions,
): Promise<AuditVerification> {
  const report = new VerificationReport();
  let last: ChainedEntry | undefined;
  let line = 0;
  for await (const content of linesOf(text)) {
    line += 1;
    const record = parse(content);
    if (record === undefined) report.add(unreadable(line));
    if (record === undefined || record === "other") continue;
    report.entry(record.id);
    for (const finding of findingsOf(record, last, chain)) report.add({ ...finding, line });
    last = record;
  }
  if (last !== undefined && last.id > newestId) report.add(behind(last.id, newestId));
  return report.result();
}

type Finding = Omit<AuditFinding, "line">;

function* findingsOf(entry: ChainedEntry, last: ChainedEntry | undefined, chain: AuditChain): Generator<Finding> {
  const { id, prev, mac } = entry;
  const at = { fromId: id, toId: id };
  const verdict = chain.verify(mac, entryStatement(entry, prev));
  if (verdict === "unknown_key") {
    yield { kind: "unknown_key", ...at, message: `entry ${id} was signed with a secret that this node does not have` };
  }
  if (verdict === "forged") yield { kind: "changed", ...at, message: `entry ${id} was changed` };
  if (last === undefined) return;
  if (id > last.id + 1) {
    const [fromId, toId] = [last.id + 1, id - 1];
    const what = fromId === toId ? `entry ${fromId} is` : `entries ${fromId} to ${toId} are`;
    yield { kind: "missing", fromId, toId, message: `${what} missing` };
  } else if (id <= last.id) {
    yield { kind: "changed", ...at, message: `entry ${id} follows entry ${last.id}: pass the files oldest first` };
  } else if (prev !== last.mac) {
    yield { kind: "changed", ...at, message: `entry ${id} does not follow the entry before it` };
  }
}

/** Undefined for a damaged line. */
function parse(line: string): ChainedEntry | "other" | undefined {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof record !== "object" || record === null) return undefined;
  if (others.has((record as { readonly type?: unknown }).type)) return "other";
  return shippedEntrySchema.safeParse(record).data;
}

async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const part of text) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() as string;
    yield* lines;
    // Not JSON, so that the line is reported as damaged. The rest of it is one more such line.
    if (rest.length > MAX_LINE_CHARACTERS) rest = "…";
  }
  if (rest !== "") yield rest;
}

function unreadable(line: number): AuditFinding {
  return { kind: "unreadable", fromId: null, toId: null, line, message: `line ${line} is not a record of the node` };
}

function behind(fileId: number, newestId: number): AuditFinding {
  const message = `the file ends with entry ${fileId}, but the newest entry of the database is ${newestId}`;
  return { kind: "database_behind", fromId: newestId + 1, toId: fileId, line: null, message };
}
