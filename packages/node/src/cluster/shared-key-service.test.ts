import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type SandboxError, systemClock } from "@sandpiper/core";
import { FakeClock, MemoryStore, rejection, settle } from "@sandpiper/core/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KeyService } from "../auth/key-service.ts";
import { SqliteKeyRecords } from "../records/sqlite-key-records.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { SharedKeyService } from "./shared-key-service.ts";

let store: MemoryStore;
let clock: FakeClock;
let undo: DisposableStack;
let errors: SandboxError[];

beforeEach(() => {
  store = new MemoryStore();
  clock = new FakeClock();
  undo = new DisposableStack();
  errors = [];
});

afterEach(() => undo.dispose());

async function node({ home = new ScratchHome(), time = clock as typeof systemClock } = {}) {
  const own = { keys: new SqliteKeyRecords(home.database).list(), tenants: new Map() };
  const onError = (error: SandboxError) => void errors.push(error);
  const keys = undo.use(new SharedKeyService({ store, clusterId: "a", home: home.path, own, clock: time, onError }));
  await keys.open();
  return { keys, home, file: join(home.path, "api-key") };
}

const textOf = (file: string) => readFileSync(file, "utf8").trim();

describe("the keys of a cluster", () => {
  it("do not include a revoked key again after an older version was put back, even if the node restarts", async () => {
    const { keys, home } = await node();
    const { key, id } = await keys.create({ name: "leaked" });
    const old = (await store.get("keys.json"))?.bytes ?? new Uint8Array();
    await keys.revoke(id);
    for (const putBack of [() => store.put("keys.json", old), () => store.delete("keys.json")]) {
      await putBack();
      await keys.list();
      expect(keys.verify(key)).toBeUndefined();
      await putBack();
      const restarted = await node({ home });
      expect(restarted.keys.verify(key)).toBeUndefined();
      expect((await restarted.keys.list()).find((each) => each.id === id)?.revokedAt).not.toBeNull();
    }
    expect(errors.map(({ reason }) => reason)).toEqual(expect.arrayContaining(["object_replayed", "object_damaged"]));
  });

  it("keep the quotas of tenants when an older version is put back, even if the node restarts", async () => {
    const { keys, home } = await node();
    const old = (await store.get("keys.json"))?.bytes ?? new Uint8Array();
    await keys.updateTenant("default", { quota: { maxSandboxes: 3 } });
    await store.put("keys.json", old);
    await keys.list();
    expect(keys.tenantQuota("default").maxSandboxes).toBe(3);
    await store.put("keys.json", old);
    const restarted = await node({ home });
    expect(restarted.keys.tenantQuota("default").maxSandboxes).toBe(3);
  });

  it("begin with a first key, which is valid on all nodes and written only to the first node's home", async () => {
    const [first, second] = [await node(), await node()];
    expect(second.keys.verify(textOf(first.file))).toMatchObject({ name: "first", scopes: ["admin"] });
    expect(existsSync(second.file)).toBe(false);
  });

  it("are the keys of its first node; the keys of nodes that join later become invalid", async () => {
    const [early, late] = [new ScratchHome(), new ScratchHome()];
    const texts = [early, late].map((home) => {
      const keys = new KeyService(home.database, { clock });
      keys.firstKey(home.path);
      return keys.create({ name: "own" }).key;
    });
    const first = await node({ home: early });
    const second = await node({ home: late });
    expect(second.keys.verify(texts[0] ?? "")).toMatchObject({ name: "own" });
    expect(second.keys.verify(texts[1] ?? "")).toBeUndefined();
    expect(second.keys.verify(textOf(first.file))).toBeDefined();
    expect(existsSync(second.file), "an invalid key").toBe(false);
    expect(textOf(`${second.file}.alone`)).toMatch(/^spk_/);
  });

  it("include one first key when several nodes start at the same time", async () => {
    store = slowStore();
    const nodes = await Promise.all([1, 2, 3].map(() => node({ time: systemClock })));
    const files = nodes.filter(({ file }) => existsSync(file));
    expect(files).toHaveLength(1);
    for (const { keys } of nodes) expect(keys.verify(textOf(files[0]?.file ?? ""))).toBeDefined();
    expect(await nodes[0]?.keys.list()).toHaveLength(1);
  });

  it("get a new first key if no valid admin key is left", async () => {
    const first = await node();
    const [{ id } = { id: "" }] = await first.keys.list();
    await first.keys.revoke(id);
    const again = await node({ home: first.home });
    expect(again.keys.verify(textOf(first.file))).toMatchObject({ scopes: ["admin"] });
  });

  it("are stored only as hashes", async () => {
    const { keys } = await node();
    const { key } = await keys.create({ name: "ci" });
    const stored = Buffer.from((await store.get("keys.json"))?.bytes ?? []).toString();
    expect(stored).toContain('"name":"ci"');
    expect(stored).not.toContain(key.slice(13));
  });

  it("are all kept when several nodes create keys at the same time", async () => {
    store = slowStore();
    const nodes = await Promise.all([1, 2, 3].map(() => node({ time: systemClock })));
    const created = await Promise.all(
      nodes.flatMap(({ keys }) => Array.from({ length: 8 }, (_, at) => keys.create({ name: `key ${at}` }))),
    );
    for (const { keys } of nodes) {
      expect(await keys.list()).toHaveLength(25);
      expect(created.filter(({ key }) => keys.verify(key) === undefined)).toEqual([]);
    }
  });

  it("change their name, expiry and quota on all nodes, and announce a first limit once", async () => {
    const [a, b] = [await node(), await node()];
    const limited: string[] = [];
    b.keys.onLimited(({ kind, name }) => limited.push(`${kind} ${name}`));
    const { id, key } = await a.keys.create({ name: "ci" });
    await b.keys.learn(key);
    await a.keys.update(id, { name: "build", quota: { maxDiskMib: 10, maxSockets: 2 } });
    await a.keys.updateTenant("default", { quota: { maxRequests: 5, maxSandboxes: 1 } });
    await clock.advance(1000);
    await expect.poll(() => b.keys.tenantQuota("default")).toMatchObject({ maxRequests: 5, maxSandboxes: 1 });
    expect(b.keys.verify(key)).toMatchObject({ name: "build", quota: { maxDiskMib: 10, maxSockets: 2 } });
    expect(limited).toEqual([`key ${id}`, "tenant default"]);
    await a.keys.update(id, { quota: { maxSockets: null } });
    expect(a.keys.keyQuota(id)).toMatchObject({ maxDiskMib: 10, maxSockets: null });
    expect(await a.keys.tenants()).toMatchObject([{ name: "default", quota: { maxRequests: 5 } }]);
    await a.keys.revoke(id);
    expect(await rejection(a.keys.update(id, { name: "x" }))).toMatchObject({ reason: "key_revoked" });
    expect(await rejection(a.keys.update("00000000", {}))).toMatchObject({ reason: "no_such_key" });
  });

  it("report an unknown key and an expiry in the past like a standalone node", async () => {
    const { keys } = await node();
    expect(await rejection(keys.revoke("00000000"))).toMatchObject({ code: "not_found", reason: "no_such_key" });
    const late = keys.create({ name: "late", expiresAt: clock.now().toISOString() });
    expect(await rejection(late)).toMatchObject({ reason: "already_expired" });
  });
});

describe("a key that is revoked on one node", () => {
  it("is refused there immediately, and on the others at their next poll", async () => {
    const [here, there] = [await node(), await node()];
    const { key, id } = await here.keys.create({ name: "ci" });
    await there.keys.learn(key);
    const { revokedAt } = await here.keys.revoke(id);
    expect(here.keys.verify(key)).toBeUndefined();
    expect(there.keys.verify(key)).toBeDefined();
    await clock.advance(1000);
    await settled();
    expect(there.keys.verify(key)).toBeUndefined();
    await clock.advance(5000);
    expect((await there.keys.revoke(id)).revokedAt, "the first revocation counts").toBe(revokedAt);
  });

  it("stays revoked when an earlier response of the store arrives late", async () => {
    let slow = "";
    store = new MemoryStore({
      fault: ({ operation }) => {
        if (operation !== slow) return undefined;
        slow = "";
        return { answerDelayMs: 20 };
      },
    });
    const { keys } = await node();
    const { key, id } = await keys.create({ name: "ci" });
    await (await node()).keys.create({ name: "changes the stored object" });
    slow = "get";
    const listing = keys.list();
    while (slow !== "") await settle();
    await Promise.all([keys.revoke(id), listing]);
    await settled();
    expect(keys.verify(key)).toBeUndefined();
  });
});

describe("a key that a node does not know", () => {
  it("is looked up in the store", async () => {
    const [here, there] = [await node(), await node()];
    const { key } = await here.keys.create({ name: "ci" });
    expect(there.keys.verify(key)).toBeUndefined();
    await there.keys.learn(key);
    expect(there.keys.verify(key)).toBeDefined();
  });

  it("is looked up during a flood of guessed keys, with five requests to the store per second", async () => {
    const [here, there] = [await node(), await node()];
    let requests = 0;
    const head = store.head.bind(store);
    store.head = (key) => {
      requests++;
      return head(key);
    };
    const guesses = Array.from({ length: 100 }, (_, at) => `spk_${String(at).padStart(8, "0")}_${"A".repeat(43)}`);
    await Promise.all(guesses.map((guess) => there.keys.learn(guess)));
    expect(requests).toBe(1);
    const { key } = await here.keys.create({ name: "ci" });
    const lookups = Promise.all([there.keys.learn(key), ...guesses.map((guess) => there.keys.learn(guess))]);
    await clock.advance(200);
    await lookups;
    expect(requests).toBe(2);
    expect(there.keys.verify(key)).toBeDefined();
  });

  it("is not looked up if it does not have the form of a key", async () => {
    const { keys } = await node();
    store.head = () => Promise.reject(new Error("unexpected request"));
    await keys.learn(undefined);
    await keys.learn("spt_x");
  });
});

describe("an unreachable store", () => {
  it("leaves known keys valid, and is reported once", async () => {
    const { keys, file } = await node();
    const head = store.head.bind(store);
    store.head = () => Promise.reject(new Error("no answer"));
    for (let second = 0; second < 3; second++) {
      await clock.advance(1000);
      await settled();
    }
    expect(keys.verify(textOf(file))).toBeDefined();
    expect(errors.map(({ message }) => message)).toEqual(["no answer"]);
    store.head = head;
    const { key, id } = await (await node()).keys.create({ name: "later" });
    await clock.advance(1000);
    await settled();
    expect(keys.verify(key)).toMatchObject({ id });
  });
});

/** Delays requests, so that those of several nodes overlap. */
function slowStore(): MemoryStore {
  return new MemoryStore({ fault: () => ({ delayMs: 1, answerDelayMs: 1 }) });
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await settle();
}
