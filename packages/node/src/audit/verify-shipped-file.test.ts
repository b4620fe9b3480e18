import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import type { ChainedEntry } from "./audit-chain.ts";
import { AuditTrail } from "./audit-trail.ts";
import { testChain } from "./testing/test-chain.ts";

let trail: AuditTrail;
let lines: string[];
beforeEach(() => {
  trail = new AuditTrail(new ScratchHome().database, { chain: testChain() });
  lines = [];
  const line = (entry: ChainedEntry) => JSON.stringify({ type: "audit", node: "n", ...entry });
  trail.subscribe((entries) => lines.push(...entries.map(line), '{"type":"event","id":7}'));
  for (let i = 0; i < 6; i += 1) {
    trail.note({ operation: "writeFile", sandboxId: null, status: 200, requestId: `r${i}` });
    trail.list({ after: 0, limit: 1 });
  }
  lines = lines.filter((line, at) => line.includes("audit") || at === 3);
});

/** In pieces that do not end with lines. */
async function* piecesOf(text: string) {
  for (let at = 0; at < text.length; at += 50) yield text.slice(at, at + 50);
}

const verify = (text = `${lines.join("\n")}\n`) => trail.verifyFile(piecesOf(text));
const findings = async () => (await verify()).findings.map(({ kind, fromId, line }) => [kind, fromId, line]);
const change = (at: number, from: string, to: string) => (lines[at] = lines[at]?.replace(from, to) ?? "");

describe("a shipped file", () => {
  it("is verified from its first entry on, and its events are skipped", async () => {
    expect(await verify()).toMatchObject({ isIntact: true, entries: 6, firstId: 1, lastId: 6 });
    lines.shift();
    expect(await verify()).toMatchObject({ isIntact: true, entries: 5, firstId: 2 });
    expect(await verify("")).toMatchObject({ isIntact: true, entries: 0, firstId: null });
  });

  it("shows changed, removed, repeated and unreadable lines with their numbers", async () => {
    change(0, '"r0"', '"r9"');
    lines.splice(1, 1, "}{");
    lines.push(lines[4] as string);
    expect(await findings()).toEqual([
      ["changed", 1, 1],
      ["unreadable", null, 2],
      ["missing", 2, 4],
      ["changed", 4, 8],
    ]);
  });

  it("shows that the database was replaced by an older one", async () => {
    const older = new AuditTrail(new ScratchHome().database, { chain: testChain() });
    const { findings } = await older.verifyFile(piecesOf(lines.join("\n")));
    expect(findings).toMatchObject([{ kind: "database_behind", fromId: 1, toId: 6 }]);
  });

  it("of another node is not accepted", async () => {
    const other = new AuditTrail(new ScratchHome().database, { chain: testChain("another secret") });
    const { findings } = await other.verifyFile(piecesOf(lines[0] as string));
    expect(findings[0]).toMatchObject({ kind: "unknown_key", line: 1 });
  });

  it("with a line without end costs no memory", async () => {
    async function* endless() {
      for (let i = 0; i < 100; i += 1) yield "x".repeat(100_000);
    }
    expect((await trail.verifyFile(endless())).findings).toMatchObject([{ kind: "unreadable", line: 1 }]);
  });
});
