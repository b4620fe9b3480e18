import { FakeClock } from "@sandpiper/core/testing";
import { auditListSchema, createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { SqliteAuditLog } from "./sqlite-audit-log.ts";

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

describe("the audit log", () => {
  it("keeps its entries in order across a restart", () => {
    const log = new SqliteAuditLog(home.database, { clock });
    const anonymous = { ...entry, actor: null, tenant: null, sandboxId: null, status: 401 };
    log.add(entry);
    log.add(anonymous);
    const items = log.list({ after: 0, limit: 9 });
    const at = clock.now().toISOString();
    expect(items).toEqual([
      { id: 1, at, ...entry },
      { id: 2, at, ...anonymous },
    ]);
    expect(auditListSchema.parse({ items })).toEqual({ items });
    expect(new SqliteAuditLog(home.reopen()).list({ after: 0, limit: 9 })).toEqual(items);
  });

  it("lists a limited number of entries after an id", () => {
    const log = new SqliteAuditLog(home.database);
    for (let i = 0; i < 5; i += 1) log.add(entry);
    expect(log.list({ after: 1, limit: 2 }).map(({ id }) => id)).toEqual([2, 3]);
  });

  it("keeps only the newest entries, also across restarts", () => {
    const log = new SqliteAuditLog(home.database, { maxEntries: 10 });
    for (let i = 0; i < 250; i += 1) log.add(entry);
    expect(log.list({ after: 0, limit: 1000 }).map(({ id }) => id)).toEqual([
      241, 242, 243, 244, 245, 246, 247, 248, 249, 250,
    ]);
    const again = new SqliteAuditLog(home.reopen(), { maxEntries: 3 });
    again.add(entry);
    expect(again.list({ after: 0, limit: 1000 }).map(({ id }) => id)).toEqual([249, 250, 251]);
    expect(home.database.prepare("SELECT count(*) AS stored FROM auditEntries").get()).toEqual({ stored: 4 });
  });

  it("is written at the end of the event loop turn, and before its database is closed", async () => {
    const stored = () => home.database.prepare("SELECT count(*) AS stored FROM auditEntries").get()?.["stored"];
    const log = new SqliteAuditLog(home.database);
    log.add(entry);
    expect(stored()).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(stored()).toBe(1);
    log.add(entry);
    log[Symbol.dispose]();
    expect(stored()).toBe(2);
  });

  it("keeps entries in memory while writes fail, and writes them later", async () => {
    const errors: string[] = [];
    const log = new SqliteAuditLog(home.database, { onError: ({ message }) => errors.push(message) });
    home.database.prepare("PRAGMA query_only = ON").run();
    log.add(entry);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toHaveLength(1);
    home.database.prepare("PRAGMA query_only = OFF").run();
    log.add(entry);
    await new Promise((resolve) => setImmediate(resolve));
    expect(log.list({ after: 0, limit: 10 })).toHaveLength(2);
  });
});
