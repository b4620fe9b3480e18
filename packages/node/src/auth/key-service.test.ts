import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FakeClock } from "@sandpiper/core/testing";
import { createdKeySchema, keyListSchema } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { KeyService } from "./key-service.ts";
import { NO_QUOTA } from "./quota.ts";

let home: ScratchHome;
let clock: FakeClock;
let keys: KeyService;

beforeEach(() => {
  home = new ScratchHome();
  clock = new FakeClock();
  keys = new KeyService(home.database, { clock });
});

function restart(): KeyService {
  return new KeyService(home.reopen(), { clock });
}

describe("a key", () => {
  it("has the documented form and is returned only once", () => {
    const created = keys.create({ name: "ci" });
    expect(created.key).toMatch(new RegExp(`^spk_${created.id}_[A-Za-z0-9_-]{43}$`));
    expect(createdKeySchema.parse(created)).toEqual(created);
    expect(keyListSchema.parse({ items: keys.list() }).items).toHaveLength(1);
    expect(JSON.stringify(keys.list())).not.toContain(created.key);
  });

  it("defaults to the scope sandboxes and the default tenant, without quota or expiry", () => {
    expect(keys.create({ name: "ci" })).toMatchObject({
      tenant: "default",
      scopes: ["sandboxes"],
      expiresAt: null,
      revokedAt: null,
      quota: NO_QUOTA,
    });
    const quota = { ...NO_QUOTA, maxSandboxes: 3 };
    expect(keys.create({ name: "b", tenant: "b", scopes: ["read", "read"], quota: { maxSandboxes: 3 } })).toMatchObject(
      { tenant: "b", scopes: ["read"], quota },
    );
  });

  it("is not stored on disk, only its hash", () => {
    const { key } = keys.create({ name: "ci" });
    const secret = key.slice("spk_12345678_".length);
    const files = ["node.db", "node.db-wal"].map((name) => readFileSync(join(home.path, name)));
    expect(files.some((content) => content.includes(secret))).toBe(false);
  });

  it("is valid after a restart, with all its fields", () => {
    const { key, ...resource } = keys.create({ name: "ci", scopes: ["read"], expiresAt: "2030-01-01T00:00:00.000Z" });
    const again = restart();
    expect(again.verify(key)).toMatchObject({ id: resource.id, scopes: ["read"] });
    expect(again.list()).toEqual([resource]);
  });

  it("is refused if any character differs", () => {
    const { key } = keys.create({ name: "ci" });
    const other = keys.create({ name: "other" });
    const wrong = [
      "",
      "spk_",
      key.slice(0, -1),
      `${key}x`,
      `${key}\n`,
      key.toUpperCase(),
      ` ${key}`,
      key.replace(/.$/, (last) => (last === "A" ? "B" : "A")),
      `spk_00000000_${key.slice(13)}`,
      `spk_${other.id}_${key.slice(13)}`,
    ];
    expect(wrong.filter((text) => keys.verify(text) !== undefined)).toEqual([]);
    expect(keys.verify(key)).toBeDefined();
  });

  it("is refused from the instant it expires", async () => {
    const expiresAt = new Date(clock.now().getTime() + 1000).toISOString();
    const { key } = keys.create({ name: "short", expiresAt });
    await clock.advance(999);
    expect(keys.verify(key)).toBeDefined();
    await clock.advance(1);
    expect(keys.verify(key)).toBeUndefined();
    expect(restart().verify(key)).toBeUndefined();
  });

  it("cannot be created with an expiry in the past", () => {
    expect(() => keys.create({ name: "late", expiresAt: clock.now().toISOString() })).toThrow(
      expect.objectContaining({ code: "invalid_argument", reason: "already_expired" }),
    );
    expect(keys.list()).toEqual([]);
  });

  it("is refused immediately and permanently once revoked, while other keys stay valid", async () => {
    const [one, other] = [keys.create({ name: "one" }), keys.create({ name: "other" })];
    expect(keys.verify(one.key)).toBeDefined();
    const { revokedAt } = keys.revoke(one.id);
    expect(revokedAt).toBe(clock.now().toISOString());
    expect(keys.verify(one.key)).toBeUndefined();
    await clock.advance(5);
    expect(keys.revoke(one.id).revokedAt, "the first revocation counts").toBe(revokedAt);
    const again = restart();
    expect(again.verify(one.key)).toBeUndefined();
    expect(again.verify(other.key)).toBeDefined();
  });

  it("that does not exist cannot be revoked", () => {
    expect(() => keys.revoke("00000000")).toThrow(
      expect.objectContaining({ code: "not_found", reason: "no_such_key" }),
    );
  });

  it("never gets the id of another key", () => {
    const ids = [1, 1, 2].map((byte) => new Uint8Array(4).fill(byte));
    const randomBytes = (size: number) => (size === 4 ? (ids.shift() as Uint8Array) : new Uint8Array(size));
    const service = new KeyService(home.database, { clock, randomBytes });
    expect([service.create({ name: "a" }).id, service.create({ name: "b" }).id]).toEqual(["01010101", "02020202"]);
  });
});

describe("the first key", () => {
  const file = () => readFileSync(join(home.path, "api-key"), "utf8");

  it("is an admin key, created at the first start and written to a file with mode 0600", () => {
    const first = keys.firstKey(home.path);
    expect(first).toMatchObject({ name: "first", tenant: "default", scopes: ["admin"] });
    expect(file().trim()).toBe(first?.key);
    expect(statSync(join(home.path, "api-key")).mode & 0o777).toBe(0o600);
    expect(keys.verify(file().trim())).toMatchObject({ id: first?.id });
  });

  it("stays the same at later starts", () => {
    keys.firstKey(home.path);
    const before = file();
    const again = restart();
    expect(again.firstKey(home.path)).toBeUndefined();
    expect(file()).toBe(before);
    expect(again.verify(before.trim())).toBeDefined();
  });

  it("is replaced by a new one if no valid admin key is left", () => {
    const first = keys.firstKey(home.path);
    keys.create({ name: "not an admin" });
    keys.revoke(first?.id ?? "");
    const again = restart();
    expect(again.firstKey(home.path)).toBeDefined();
    expect(again.verify(first?.key ?? "")).toBeUndefined();
    expect(again.verify(file().trim())).toMatchObject({ scopes: ["admin"] });
  });
});
