import { FakeClock, settle } from "@sandpiper/core/testing";
import { createSandboxId, type FlowRecord, type SandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import type { FlowQuery } from "./flow-entry.ts";
import { FlowLog, type FlowLogOptions } from "./flow-log.ts";
import { flowRecord } from "./testing/flow-record.ts";

let home: ScratchHome;
let clock: FakeClock;
let stop: AbortController;
beforeEach(() => {
  home = new ScratchHome();
  clock = new FakeClock();
  stop = new AbortController();
});
afterEach(() => stop.abort());

const one = createSandboxId();
const two = createSandboxId();
const owner = { tenant: "a" };

function openLog(options: Partial<FlowLogOptions> = {}): FlowLog {
  return new FlowLog(home.database, { clock, maxPerSandbox: 100, maxPerTenant: 1000, ...options });
}

function records(log: FlowLog, id: SandboxId = one, query: FlowQuery = {}): readonly FlowRecord[] {
  return log.list(id, { limit: 1000, ...query }).entries.map(({ record }) => record);
}

function add(log: FlowLog, count: number, { sandboxId = one, tenant = "a" } = {}): FlowRecord[] {
  return Array.from({ length: count }, (_, n) => {
    const record = flowRecord({ sandboxId, name: `${n}.example.com` });
    log.closed(record, { tenant });
    return record;
  });
}

describe("the log of flows", () => {
  it("shows a connection while it is open, and once when it has ended", async () => {
    const log = openLog();
    const open = flowRecord({ sandboxId: one, endedAt: null, durationMs: null });
    const ended = { ...open, endedAt: clock.now().toISOString(), durationMs: 5, receivedBytes: 7 };
    log.opened(open, owner);
    expect(records(log)).toEqual([open]);
    await clock.advance(1000);
    log.closed(ended, owner);
    expect(records(log)).toEqual([ended]);
  });

  it("writes what was added within 100 ms together, and wakes followers then", async () => {
    const log = openLog();
    const batches: number[] = [];
    using _ = log.subscribe((entries) => batches.push(entries.length));
    add(log, 40);
    expect(batches).toEqual([]);
    await clock.advance(100);
    expect(batches).toEqual([40]);
    const open = flowRecord({ sandboxId: one, endedAt: null });
    log.opened(open, owner);
    log.closed({ ...open, endedAt: open.at }, owner);
    await clock.advance(100);
    expect(batches).toEqual([40, 1]);
  });

  it("writes 10,000 connections in batches of at most 200, with pauses", async () => {
    const log = openLog({ maxPerSandbox: 20_000, maxPerTenant: 20_000 });
    const batches: number[] = [];
    using _ = log.subscribe((entries) => batches.push(entries.length));
    add(log, 10_000);
    await clock.advance(100);
    expect(batches).toEqual([200]);
    await clock.advance(1000);
    expect([batches.length, Math.max(...batches)]).toEqual([50, 200]);
    expect(records(log, one, {})).toHaveLength(1000);
  });

  it("filters by denial, start and cursor, and lists the newest on request", async () => {
    const log = openLog();
    log.closed(flowRecord({ sandboxId: one, name: "a", at: "2026-01-01T00:00:00.000Z", decision: "denied" }), owner);
    log.closed(flowRecord({ sandboxId: one, name: "b", at: "2026-01-02T00:00:00.000Z" }), owner);
    log.closed(flowRecord({ sandboxId: one, name: "c", at: "2026-01-03T00:00:00.000Z", decision: "denied" }), owner);
    const names = (query: FlowQuery) => records(log, one, query).map(({ name }) => name);
    expect(names({ deniedOnly: true })).toEqual(["a", "c"]);
    expect(names({ since: new Date("2026-01-02T00:00:00.000Z") })).toEqual(["b", "c"]);
    const [first] = log.list(one, { limit: 1 }).entries;
    expect(names({ after: first?.cursor })).toEqual(["b", "c"]);
    expect(log.list(one, { limit: 2, newest: true }).entries.map(({ record }) => record.name)).toEqual(["b", "c"]);
    expect(records(log, two)).toEqual([]);
  });

  it("keeps the newest records of a sandbox, and counts the others", () => {
    const log = openLog({ maxPerSandbox: 10 });
    const added = add(log, 25);
    expect(records(log)).toEqual(added.slice(-10));
    expect(log.list(one, { limit: 1 }).dropped).toBe(15);
    expect(openLog({ maxPerSandbox: 10 }).list(one, { limit: 1 }).dropped).toBe(15);
  });

  it("removes the class with the most records first: a flood of queries leaves denials and connections", () => {
    const log = openLog({ maxPerSandbox: 30 });
    const first = flowRecord({ sandboxId: one, name: "evil.example.com", decision: "denied" });
    log.closed(first, owner);
    const flows = add(log, 8);
    for (let n = 0; n < 300; n += 1) log.closed(flowRecord({ sandboxId: one, kind: "query", port: null }), owner);
    expect(records(log).filter(({ kind }) => kind === "flow")).toEqual([first, ...flows]);
    expect(records(log)).toHaveLength(30);
    for (let n = 0; n < 300; n += 1) log.closed(flowRecord({ sandboxId: one, decision: "denied" }), owner);
    const kept = records(log);
    const kinds = kept.map(({ kind, decision }) => (decision === "denied" ? decision : kind));
    expect(["denied", "flow", "query"].map((name) => kinds.filter((each) => each === name).length)).toEqual([
      11, 8, 11,
    ]);
    expect(openLog({ maxPerSandbox: 30 }).list(one, { limit: 1000 }).entries).toHaveLength(30);
  });

  it("takes what exceeds a tenant's share from its longest log, and never from another tenant", () => {
    const log = openLog({ maxPerTenant: 50 });
    const quiet = add(log, 10, { sandboxId: two });
    const other = createSandboxId();
    add(log, 40, { sandboxId: other, tenant: "b" });
    add(log, 90);
    expect(records(log, two)).toEqual(quiet);
    expect(records(log)).toHaveLength(40);
    expect(records(log, other)).toHaveLength(40);
    expect(log.list(one, { limit: 1 }).dropped).toBe(50);
  });

  it("survives a restart, and ends connections that the earlier process left open", async () => {
    const before = openLog();
    const ended = flowRecord({ sandboxId: one });
    const open = flowRecord({ sandboxId: one, endedAt: null, durationMs: null });
    before.closed(ended, owner);
    before.opened(open, owner);
    before[Symbol.dispose]();
    await clock.advance(5000);
    const after = openLog();
    expect(records(after)).toEqual([ended, { ...open, reason: "node_restarted", endedAt: clock.now().toISOString() }]);
    expect(records(openLog())).toHaveLength(2);
  });

  it("writes the rest when it is disposed", () => {
    const log = openLog();
    const added = add(log, 700);
    log[Symbol.dispose]();
    expect(records(openLog({ maxPerSandbox: 1000 }))).toEqual(added.slice(-100));
  });

  it("follows at the reader's pace, without repeating or missing a change", async () => {
    const log = openLog();
    const seen: [string | null, boolean][] = [];
    const open = flowRecord({ sandboxId: one, name: "open", endedAt: null });
    log.opened(open, owner);
    const follow = async () => {
      for await (const { record } of log.follow(one, {}, stop.signal))
        seen.push([record.name, record.endedAt !== null]);
    };
    const ended = follow();
    await clock.advance(100);
    await settle();
    expect(seen).toEqual([["open", false]]);
    log.closed(flowRecord({ sandboxId: two }), owner);
    log.closed({ ...open, endedAt: open.at }, owner);
    log.closed(flowRecord({ sandboxId: one, name: "next" }), owner);
    await clock.advance(100);
    await settle();
    expect(seen.slice(1)).toEqual([
      ["open", true],
      ["next", true],
    ]);
    stop.abort();
    await ended;
  });

  it("lets followers of a sandbox that leaves read the rest, and ends them", async () => {
    const log = openLog();
    const seen: string[] = [];
    const follow = async (id: SandboxId) => {
      for await (const { record } of log.follow(id, {}, stop.signal)) seen.push(record.id);
    };
    const ended = follow(one);
    const other = follow(two);
    await settle();
    const last = add(log, 300).map(({ id }) => id);
    log.endFollowers(one);
    await ended;
    expect(seen).toEqual(last.slice(-100));
    stop.abort();
    await other;
  });

  it("continues after a cursor of another node, because cursors follow the time", async () => {
    const [{ cursor = 0 } = {}] = (() => {
      const log = openLog();
      add(log, 1);
      return log.list(one, { limit: 1 }).entries;
    })();
    home = new ScratchHome();
    await clock.advance(1000);
    const log = openLog();
    add(log, 1);
    expect(records(log, one, { after: cursor })).toHaveLength(1);
  });

  it("deletes old records of sandboxes that the node no longer knows, and only those", async () => {
    const log = openLog();
    new SqliteSandboxRecords(home.database).add(sandboxRecord({ id: two }));
    const old = { at: "2020-01-01T00:00:00.000Z" };
    log.closed(flowRecord({ sandboxId: one, ...old }), owner);
    log.closed(flowRecord({ sandboxId: one, at: "2026-01-01T00:00:00.000Z" }), owner);
    log.closed(flowRecord({ sandboxId: two, ...old }), owner);
    await clock.advance(100);
    await log.prune(new Date("2025-01-01T00:00:00.000Z"));
    expect([records(log), records(log, two)].map(({ length }) => length)).toEqual([1, 1]);
    await log.prune(new Date("2027-01-01T00:00:00.000Z"));
    expect([records(log), records(log, two)].map(({ length }) => length)).toEqual([0, 1]);
  });

  it("keeps records in memory while they cannot be written, and reports why", async () => {
    const errors: unknown[] = [];
    const log = openLog({ onError: (error) => errors.push(error) });
    home.database.prepare("ALTER TABLE flowRecords RENAME TO gone").run();
    const added = add(log, 3);
    await clock.advance(100);
    expect(errors).toHaveLength(1);
    home.database.prepare("ALTER TABLE gone RENAME TO flowRecords").run();
    await clock.advance(100);
    expect(records(log)).toEqual(added);
  });

  it("counts as dropped what did not fit into memory while writes failed", async () => {
    const log = openLog({ maxPerSandbox: 20_000, maxPerTenant: 20_000 });
    home.database.prepare("ALTER TABLE flowRecords RENAME TO gone").run();
    const added = add(log, 10_250);
    await clock.advance(100);
    home.database.prepare("ALTER TABLE gone RENAME TO flowRecords").run();
    await clock.advance(2000);
    const { entries, dropped } = log.list(one, { limit: 20_000 });
    expect([entries.length, dropped]).toEqual([10_000, 250]);
    expect(entries[0]?.record).toEqual(added[250]);
    expect(openLog().list(one, { limit: 1 }).dropped).toBe(250);
  });

  it("shortens the requests of a connection that made very many", () => {
    const log = openLog();
    const requests = Array.from({ length: 1000 }, () => ({ method: "GET", path: `/${"a".repeat(100)}`, status: 200 }));
    log.closed(flowRecord({ sandboxId: one, requests }), owner);
    const stored = records(log)[0]?.requests ?? [];
    expect(stored.length).toBeGreaterThan(50);
    expect(stored.length).toBeLessThan(200);
  });
});
