import { FakeClock } from "@sandpiper/core/testing";
import { auditListSchema, createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import type { NodeDatabase } from "../records/database.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import type { AuditShare } from "./audit-rotation.ts";
import { type AuditLogOptions, SqliteAuditLog } from "./sqlite-audit-log.ts";
import { testChain } from "./testing/test-chain.ts";

let home: ScratchHome;
const clock = new FakeClock();

beforeEach(() => {
  home = new ScratchHome();
});

const entry = {
  actor: "0a1b2c3d",
  tenant: "a",
  operation: "execInSandbox",
  sandboxId: createSandboxId(),
  status: 200,
  requestId: "r1",
};
const share: AuditShare = "tenant:a";

function open(database: NodeDatabase, options: Partial<AuditLogOptions> = {}): SqliteAuditLog {
  return new SqliteAuditLog(database, { chain: testChain(), ...options });
}

function fill(log: SqliteAuditLog, count: number, of: AuditShare = share): void {
  for (let i = 0; i < count; i += 1) log.add({ ...entry, share: of });
}

const idsOf = (log: SqliteAuditLog) => log.list({ after: 0, limit: 1000 }).map(({ id }) => id);
const sharesOf = (log: SqliteAuditLog) => {
  log.list({ after: 0, limit: 1 });
  const rows = home.database.prepare("SELECT share, count(*) AS count FROM auditEntries GROUP BY share").all();
  return Object.fromEntries(rows.map(({ share, count }) => [share, count]));
};

describe("the audit log", () => {
  it("keeps its entries in order across a restart", () => {
    const log = open(home.database, { clock });
    const anonymous = { ...entry, actor: null, tenant: null, sandboxId: null, status: 401 };
    const summary = { ...anonymous, notRecorded: { requests: 3, addresses: 2 } };
    log.add({ ...entry, share });
    log.add({ ...anonymous, share: "anonymous" });
    log.add({ ...summary, share: "anonymous" });
    const items = log.list({ after: 0, limit: 9 });
    const at = clock.now().toISOString();
    expect(items).toEqual([
      { id: 1, at, ...entry },
      { id: 2, at, ...anonymous },
      { id: 3, at, ...summary },
    ]);
    expect(auditListSchema.parse({ items })).toEqual({ items });
    expect(open(home.reopen()).list({ after: 0, limit: 9 })).toEqual(items);
  });

  it("lists a limited number of entries after an id", () => {
    const log = open(home.database);
    fill(log, 5);
    expect(log.list({ after: 1, limit: 2 }).map(({ id }) => id)).toEqual([2, 3]);
  });

  it("keeps only the newest entries, also across restarts", () => {
    const log = open(home.database, { maxEntries: 10 });
    fill(log, 250);
    expect(idsOf(log)).toEqual([241, 242, 243, 244, 245, 246, 247, 248, 249, 250]);
    const again = open(home.reopen(), { maxEntries: 3 });
    fill(again, 1);
    expect(idsOf(again)).toEqual([249, 250, 251]);
  });

  it("is written at the end of the event loop turn, and before its database is closed", async () => {
    const stored = () => home.database.prepare("SELECT count(*) AS stored FROM auditEntries").get()?.["stored"];
    const log = open(home.database);
    fill(log, 1);
    expect(stored()).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(stored()).toBe(1);
    fill(log, 1);
    log[Symbol.dispose]();
    expect(stored()).toBe(2);
  });

  it("keeps entries in memory while writes fail, writes them later, and counts those that did not fit", async () => {
    const errors: string[] = [];
    const log = open(home.database, { onError: ({ message }) => errors.push(message) });
    home.database.prepare("PRAGMA query_only = ON").run();
    fill(log, 10_003);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toHaveLength(1);
    home.database.prepare("PRAGMA query_only = OFF").run();
    fill(log, 1);
    await new Promise((resolve) => setImmediate(resolve));
    const [lost] = log.list({ after: 0, limit: 1 });
    expect(lost).toMatchObject({ operation: "entriesNotRecorded", notRecorded: { requests: 3, addresses: 0 } });
    expect((await log.verify()).entries).toBe(10_002);
  });
});

describe("a full audit log", () => {
  it("removes the rows of the tenant that has the most, not those of others", () => {
    const log = open(home.database, { maxEntries: 100 });
    fill(log, 5, "operators");
    fill(log, 5, "tenant:quiet");
    for (let turn = 0; turn < 20; turn += 1) {
      fill(log, 50, "tenant:loud");
      log.list({ after: 0, limit: 1 });
    }
    expect(sharesOf(log)).toEqual({ operators: 5, "tenant:quiet": 5, "tenant:loud": 90 });
  });

  it("divides its room evenly among tenants that flood it, and reserves a part for operators and anonymous callers", () => {
    const log = open(home.database, { maxEntries: 100 });
    for (let turn = 0; turn < 20; turn += 1) {
      for (const of of ["operators", "anonymous", "tenant:one", "tenant:two"] as const) fill(log, 20, of);
      log.list({ after: 0, limit: 1 });
    }
    const { operators = 0, anonymous = 0, "tenant:one": one = 0, "tenant:two": two = 0 } = sharesOf(log);
    expect(Math.min(Number(operators), Number(anonymous))).toBeGreaterThanOrEqual(10);
    expect(Math.abs(Number(one) - Number(two))).toBeLessThanOrEqual(1);
  });
});
