import { beforeEach, describe, expect, it } from "vitest";
import { Keyring } from "../auth/keyring.ts";
import { openDatabase } from "../records/database.ts";
import { migrations } from "../records/migrations.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { AuditChain } from "./audit-chain.ts";
import type { AuditShare } from "./audit-rotation.ts";
import { SqliteAuditLog } from "./sqlite-audit-log.ts";
import { testChain } from "./testing/test-chain.ts";

let home: ScratchHome;
beforeEach(() => {
  home = new ScratchHome();
});

const entry = { actor: "k", tenant: "a", operation: "writeFile", sandboxId: null, status: 200, requestId: "r" };

function openLog({ maxEntries = 1000, chain = testChain() } = {}): SqliteAuditLog {
  return new SqliteAuditLog(home.database, { chain, maxEntries });
}

function fill(log: SqliteAuditLog, count: number, share: AuditShare = "tenant:a"): SqliteAuditLog {
  for (let i = 0; i < count; i += 1) log.add({ ...entry, share });
  log.list({ after: 0, limit: 1 });
  return log;
}

const tamper = (sql: string) => home.database.prepare(sql).run();
const findings = async (log: SqliteAuditLog) =>
  (await log.verify()).findings.map(({ kind, fromId, toId }) => [kind, fromId, toId]);

describe("the chain of audit entries", () => {
  it("is intact across restarts, and for an empty log", async () => {
    expect(await openLog().verify()).toMatchObject({ isIntact: true, entries: 0, firstId: null });
    fill(openLog(), 300);
    home.reopen();
    expect(await fill(openLog(), 200).verify()).toEqual({
      isIntact: true,
      entries: 500,
      rotated: 0,
      firstId: 1,
      lastId: 500,
      findings: [],
    });
  });

  it("stays intact when entries are rotated out of its middle, and counts them", async () => {
    const log = openLog({ maxEntries: 100 });
    fill(log, 3, "operators");
    for (let turn = 0; turn < 10; turn += 1) {
      fill(log, 30, "tenant:loud");
      fill(log, 2, "tenant:quiet");
    }
    expect(await log.verify()).toMatchObject({ isIntact: true, rotated: 221, firstId: 1, lastId: 323 });
    const ranges = home.database.prepare("SELECT count(*) AS count FROM auditRotated").get()?.["count"];
    expect(ranges).toBeLessThan(12);
  });

  it("is intact when every entry of its end was rotated", async () => {
    const log = openLog({ maxEntries: 10 });
    fill(log, 9, "tenant:a");
    fill(log, 30, "tenant:b");
    expect(await log.verify()).toMatchObject({ isIntact: true, lastId: 39 });
  });

  it("shows a removed entry, a changed one and an inserted one, with their places", async () => {
    const log = fill(openLog(), 10);
    tamper("DELETE FROM auditEntries WHERE id IN (3, 4)");
    tamper("UPDATE auditEntries SET actor = 'innocent' WHERE id = 8");
    expect(await findings(log)).toEqual([
      ["missing", 3, 4],
      ["changed", 8, 8],
    ]);
    tamper(`INSERT INTO auditEntries SELECT 11, at, actor, tenant, operation, sandboxId, status, requestId, notRecorded,
      share, mac FROM auditEntries WHERE id = 10`);
    expect((await findings(log)).slice(2)).toEqual([
      ["changed", 11, 11],
      ["head", 10, 10],
    ]);
  });

  it("shows that the oldest or the newest entries were removed", async () => {
    const log = fill(openLog(), 10);
    tamper("DELETE FROM auditEntries WHERE id <= 2 OR id >= 9");
    expect(await findings(log)).toEqual([
      ["missing", 1, 2],
      ["missing", 9, 10],
    ]);
  });

  it("shows a forged range of rotated entries, also after later rotations beside it", async () => {
    const log = openLog({ maxEntries: 10 });
    fill(log, 20);
    tamper("DELETE FROM auditEntries WHERE id = 15");
    tamper("INSERT INTO auditRotated SELECT 15, 15, mac, seal FROM auditRotated");
    expect(await findings(log)).toEqual([["missing", 15, 15]]);
    fill(log, 8);
    expect(await findings(log)).toEqual([["missing", 15, 15]]);
  });

  it("shows a head that was removed or changed, and a new chain after it", async () => {
    const log = fill(openLog(), 4);
    tamper("UPDATE auditHead SET id = 3");
    expect(await findings(log)).toEqual([["head", 3, 3]]);
    tamper("DELETE FROM auditHead");
    expect(await findings(log)).toEqual([["head", 4, 4]]);
    home.reopen();
    expect(await findings(fill(openLog(), 2))).toEqual([["changed", 5, 5]]);
  });

  it("verifies entries of a replaced secret, and names those of an unknown one", async () => {
    fill(openLog(), 2);
    const both = new AuditChain(new Keyring({ secrets: ["the new secret", "a secret of the tests"], salt: "node" }));
    expect((await fill(openLog({ chain: both }), 2).verify()).isIntact).toBe(true);
    const onlyNew = openLog({ chain: testChain("the new secret") });
    expect(await findings(onlyNew)).toEqual([
      ["unknown_key", 1, 1],
      ["unknown_key", 2, 2],
    ]);
  });

  it("begins with the entries of a database from before it", async () => {
    const old = openDatabase(home.databasePath, { migrations: migrations.slice(0, 5) });
    const add = `INSERT INTO auditEntries (at, actor, tenant, operation, sandboxId, status, requestId)
      VALUES (1, 'k', 'a', 'x', NULL, 200, 'r')`;
    for (let i = 0; i < 5; i += 1) old.prepare(add).run();
    old.prepare("DELETE FROM auditEntries WHERE id <= 2").run();
    old[Symbol.dispose]();
    expect(await fill(openLog(), 1).verify()).toMatchObject({ isIntact: true, entries: 4, rotated: 2, lastId: 6 });
  });
});
