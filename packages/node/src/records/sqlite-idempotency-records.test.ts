import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { SqliteIdempotencyRecords } from "./sqlite-idempotency-records.ts";

let home: ScratchHome;
let clock: FakeClock;
let records: SqliteIdempotencyRecords;

beforeEach(() => {
  home = new ScratchHome();
  clock = new FakeClock();
  records = new SqliteIdempotencyRecords(home.database, { clock });
});

const request = { tenant: "a", key: "k", fingerprint: "f" };

describe("idempotency records", () => {
  it("find the sandbox of the first request for a repeated one, also after a restart", () => {
    const id = createSandboxId();
    expect(records.find(request)).toBeUndefined();
    records.add(request, id);
    expect(records.find(request)).toBe(id);
    expect(new SqliteIdempotencyRecords(home.reopen(), { clock }).find(request)).toBe(id);
  });

  it("refuse a key that was used with another request", () => {
    records.add(request, createSandboxId());
    expect(() => records.find({ ...request, fingerprint: "g" })).toThrow(
      expect.objectContaining({ code: "conflict", reason: "idempotency_key_reused" }),
    );
  });

  it("keep tenants apart", () => {
    records.add(request, createSandboxId());
    expect(records.find({ ...request, tenant: "b", fingerprint: "g" })).toBeUndefined();
  });

  it("expire after a day", async () => {
    records.add(request, createSandboxId());
    await clock.advance(24 * 3_600_000 - 1);
    expect(records.find(request)).toBeDefined();
    await clock.advance(1);
    expect(records.find({ ...request, fingerprint: "g" })).toBeUndefined();
    records.add({ ...request, key: "other" }, createSandboxId());
    expect(home.database.prepare("SELECT key FROM idempotencyKeys").all()).toEqual([{ key: "other" }]);
  });

  it("are replaced when the key is added again", () => {
    const id = createSandboxId();
    records.add(request, createSandboxId());
    records.add(request, id);
    expect(records.find(request)).toBe(id);
  });
});
