import { createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import type { SandboxFilter } from "./sandbox-record.ts";
import { SqliteSandboxRecords } from "./sqlite-sandbox-records.ts";

let home: ScratchHome;
let records: SqliteSandboxRecords;

beforeEach(() => {
  home = new ScratchHome();
  records = new SqliteSandboxRecords(home.database);
});

const full = sandboxRecord({
  name: "büro \0 1",
  labels: { "a.b/c": "1", d: 'it\'s "x"' },
  metadata: { deep: [1, null, { z: true }] },
  env: { A: "b=c\n" },
  vcpuCount: 0.5,
  language: "python",
  cwd: "/w",
  user: "nobody",
  timeoutMs: 1,
  ttlMs: 2,
  expiresAt: new Date(3),
  idleTimeoutMs: 4,
  idleExcept: ["exec", "client"],
  onExpiry: "pause",
  onFailure: "keep",
  state: "failed",
  failure: { code: "internal", reason: "r", message: "m" },
  endedAt: new Date(5),
});

describe("a page of sandbox records", () => {
  it("ends before it becomes too large, and has no environments", () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`l${at}`, "x".repeat(4096)]));
    const env = { A: "x".repeat(100_000) };
    const all = Array.from({ length: 20 }, () => sandboxRecord({ id: createSandboxId(), labels, env }));
    for (const record of all) records.add(record);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = records.list({ limit: 1000, cursor });
      expect(JSON.stringify(page).length).toBeLessThan(4 * 1024 * 1024);
      expect(page.items.some((item) => "env" in item)).toBe(false);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen.toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  });
});

describe("sandbox records", () => {
  it.each([
    ["everything set", full],
    ["nothing optional", sandboxRecord()],
  ])("are read as they were written, with %s, also after a restart", (_, record) => {
    records.add(record);
    expect(records.get(record.id)).toEqual(record);
    expect(new SqliteSandboxRecords(home.reopen()).get(record.id)).toEqual(record);
  });

  it("have unique ids", () => {
    records.add(full);
    expect(() => records.add({ ...full, name: "other" })).toThrow(expect.objectContaining({ code: "already_exists" }));
    expect(records.get(full.id)?.name).toBe(full.name);
  });

  it("change only in the given fields", () => {
    const [one, other] = [sandboxRecord(), sandboxRecord()];
    records.add(one);
    records.add(other);
    const change = { state: "failed", failure: full.failure, endedAt: new Date(9), labels: { x: "y" } } as const;
    expect(records.change(one.id, change)).toEqual({ ...one, ...change });
    expect(records.get(one.id)).toEqual({ ...one, ...change });
    expect(records.get(other.id)).toEqual(other);
  });

  it("are not found under an id that was never added", () => {
    const id = createSandboxId();
    expect(records.get(id)).toBeUndefined();
    expect(() => records.change(id, { name: "x" })).toThrow(
      expect.objectContaining({ code: "not_found", reason: "no_such_sandbox" }),
    );
  });

  it("count towards their key's quota until they fail or are destroyed, and with checkpoints until they are destroyed", () => {
    const mine = { keyId: "mine", memoryMib: 100, vcpuCount: 0.5, checkpointCount: 1, checkpointBytes: 10 };
    const [creating, paused] = [
      sandboxRecord({ ...mine, state: "creating" }),
      sandboxRecord({ ...mine, state: "paused" }),
    ];
    const others = [
      sandboxRecord({ ...mine, state: "failed" }),
      sandboxRecord({ ...mine, state: "destroyed" }),
      sandboxRecord({ keyId: "other", state: "failed" }),
    ];
    for (const record of [creating, paused, ...others]) records.add(record);
    expect(records.live().map(({ id }) => id)).toEqual([creating.id, paused.id]);
    expect(records.usage({ keyId: "mine" })).toMatchObject({
      sandboxes: 2,
      memoryMib: 200,
      vcpuCount: 1,
      diskMib: 2048,
      checkpoints: 3,
      checkpointBytes: 30,
    });
    expect(records.usage({ keyId: "other" })).toMatchObject({ sandboxes: 0, memoryMib: 0, vcpuCount: 0, diskMib: 0 });
  });

  it("are pruned if their sandbox ended before the given instant", () => {
    const old = sandboxRecord({ state: "destroyed", endedAt: new Date(10) });
    const recent = sandboxRecord({ state: "failed", endedAt: new Date(20) });
    const live = sandboxRecord();
    for (const record of [old, recent, live]) records.add(record);
    expect(records.prune(new Date(20))).toBe(1);
    expect([old, recent, live].map(({ id }) => records.get(id) !== undefined)).toEqual([false, true, true]);
  });
});

describe("the list of sandboxes", () => {
  it("is newest first, in pages without gaps or repeats, also within one millisecond", () => {
    const all = Array.from({ length: 25 }, (_, i) => sandboxRecord({ createdAt: new Date(1000 + Math.floor(i / 7)) }));
    for (const record of all) records.add(record);
    const expected = all.map(({ id }) => id).reverse();
    expect(pages({ limit: 4 })).toEqual(expected);
    expect(pages({ limit: 25 })).toEqual(expected);
    expect(pages({ limit: 4, tenant: "default" })).toEqual(expected);
    expect(records.list({ limit: 25 }).nextCursor).toBeNull();
  });

  it("continues at its cursor while sandboxes are created, destroyed and pruned", () => {
    const all = Array.from({ length: 6 }, (_, i) => sandboxRecord({ createdAt: new Date(1000 + i) }));
    for (const record of all) records.add(record);
    const { nextCursor, items } = records.list({ limit: 3 });
    records.add(sandboxRecord({ createdAt: new Date(2000) }));
    records.change(items[2]?.id as never, { state: "destroyed", endedAt: new Date(1) });
    records.prune(new Date(2));
    const rest = records.list({ limit: 3, cursor: nextCursor ?? "" });
    expect(rest.items.map(({ id }) => id)).toEqual([all[2]?.id, all[1]?.id, all[0]?.id]);
  });

  it("includes destroyed sandboxes only on request", () => {
    const [ready, failed, destroyed] = (["ready", "failed", "destroyed"] as const).map((state) =>
      sandboxRecord({ state }),
    );
    for (const record of [ready, failed, destroyed]) records.add(record as never);
    expect(pages({ limit: 9 })).toEqual([failed?.id, ready?.id]);
    expect(pages({ limit: 9, state: "destroyed" })).toEqual([destroyed?.id]);
    expect(pages({ limit: 9, state: "failed" })).toEqual([failed?.id]);
  });

  it("contains only sandboxes that match every filter", () => {
    const a = sandboxRecord({ tenant: "a", name: "n", labels: { team: "x", "app.kubernetes.io/name": "1" } });
    const b = sandboxRecord({ tenant: "b", provider: "gvisor", name: "n", labels: { team: "y" } });
    for (const record of [a, b]) records.add(record);
    const label = (key: string, value: string | null) => ({ key, value });
    const filters: [Omit<SandboxFilter, "limit">, unknown[]][] = [
      [{ tenant: "a" }, [a.id]],
      [{ tenant: "c" }, []],
      [{ provider: "gvisor" }, [b.id]],
      [{ name: "n" }, [b.id, a.id]],
      [{ name: "n", tenant: "b" }, [b.id]],
      [{ labels: [] }, [b.id, a.id]],
      [{ labels: [label("team", null)] }, [b.id, a.id]],
      [{ labels: [label("team", "x")] }, [a.id]],
      [{ labels: [label("team", "")] }, []],
      [{ labels: [label("team", "x"), label("app.kubernetes.io/name", "1")] }, [a.id]],
      [{ labels: [label("team", "y"), label("app.kubernetes.io/name", null)] }, []],
      [{ labels: [label("app", null)] }, []],
      [{ labels: [label("') OR 1=1 --", "' OR '1'='1")] }, []],
      [{ name: "' OR 1=1 --" }, []],
    ];
    for (const [filter, expected] of filters)
      expect(pages({ ...filter, limit: 9 }), JSON.stringify(filter)).toEqual(expected);
  });

  it.each([
    "",
    "x",
    "e30",
    "!!!",
    Buffer.from("1/2").toString("base64url"),
    Buffer.from(`-1/${full.id}`).toString("base64url"),
  ])("refuses the invalid cursor %j", (cursor) => {
    expect(() => records.list({ limit: 1, cursor })).toThrow(
      expect.objectContaining({ code: "invalid_argument", reason: "bad_cursor" }),
    );
  });

  it("reads a page by an index, without sorting, for any number of sandboxes", () => {
    const plan = home.database
      .prepare(`EXPLAIN QUERY PLAN SELECT * FROM sandboxes WHERE state <> 'destroyed' AND tenant = :tenant
        ORDER BY createdAt DESC, sequence DESC LIMIT 10`)
      .all({ tenant: "a" });
    expect(plan.map(({ detail }) => detail)).toEqual([
      "SEARCH sandboxes USING INDEX presentSandboxesByTenant (tenant=?)",
    ]);
  });
});

function pages(filter: SandboxFilter): unknown[] {
  const ids: unknown[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = records.list({ ...filter, cursor });
    expect(page.items.length).toBeLessThanOrEqual(filter.limit);
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  return ids;
}
