import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { MemoryStore, rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, describe, expect, it } from "vitest";
import { Keyring } from "../../packages/node/src/auth/keyring.ts";
import { StoreNodes } from "../../packages/node/src/handoff/testing/store-nodes.ts";
import { savedSandboxJson } from "../../packages/node/src/ownership/saved-sandbox.ts";
import { StandaloneOwnership } from "../../packages/node/src/ownership/standalone-ownership.ts";
import { CheckpointStore } from "../../packages/node/src/store/checkpoint-store.ts";
import type { DirectoryStore } from "../../packages/node/src/store/directory-store.ts";
import { rewriteData } from "../../packages/node/src/store/rewrite-data.ts";
import { sealObject } from "../../packages/node/src/store/sealed-objects.ts";
import { SealedStates } from "../../packages/node/src/store/sealed-states.ts";
import { sandboxRecord } from "../../packages/node/src/testing/sandbox-record.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-store-data-"));
afterAll(() => rm(root, { recursive: true, force: true }));

const CONTENT = Buffer.from("PASSWORD=hunter2 and much more\n".repeat(1000));
const keyringOf = (...secrets: [string, ...string[]]) => new Keyring({ secrets, salt: "cluster" });
const keyring = keyringOf("the secret");

async function openBed(store = new MemoryStore(), keys = keyring) {
  const checkpointStore = new CheckpointStore({
    store,
    keyring: keys,
    clock: systemClock,
    directory: join(root, "tmp"),
  });
  const saved = await mkdtemp(join(root, "d-"));
  await writeFile(join(saved, "image"), CONTENT);
  const keysOf = async (prefix: string) => (await Array.fromAsync(store.list(prefix), ({ key }) => key)).sort();
  const bytesOf = async (key: string) => Buffer.from((await store.get(key))?.bytes ?? []);
  const owner = { id: createSandboxId(), tenant: "mine" };
  const load = async (from = owner, checkpoint = "c") => {
    const directory = await mkdtemp(join(root, "l-"));
    await checkpointStore.load(from, checkpoint, directory);
    return readFile(join(directory, "image"));
  };
  return { store, checkpointStore, saved, keysOf, bytesOf, owner, load };
}

/** Every way to change an object, except to return it to what it was. */
function changesTo(bytes: Buffer): Record<string, Buffer> {
  const flips = [0, 1, 3, 8, bytes.length >> 1, bytes.length - 1].map((at) => {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    return [`a flipped bit at ${at}`, flipped] as const;
  });
  return {
    ...Object.fromEntries(flips),
    "the last byte missing": bytes.subarray(0, -1),
    "the header alone": bytes.subarray(0, 18),
    "one byte": bytes.subarray(0, 1),
    nothing: Buffer.alloc(0),
    "a byte appended": Buffer.concat([bytes, Buffer.alloc(1)]),
    "random bytes": randomBytes(bytes.length),
  };
}

const damaged = { code: "data_loss", reason: "checkpoint_damaged" };

describe("write access to the store", () => {
  it("changes no chunk or manifest that a node then restores", async () => {
    const { store, checkpointStore, saved, keysOf, bytesOf, owner, load } = await openBed();
    await checkpointStore.save(owner, "c", saved);
    const [chunk = ""] = await keysOf("chunks/");
    const [manifest = ""] = await keysOf("checkpoints/");
    for (const key of [chunk, manifest]) {
      const whole = await bytesOf(key);
      for (const [change, bytes] of Object.entries(changesTo(whole))) {
        await store.put(key, bytes);
        const { reason } = await rejection(load());
        expect(reason, `${change} in ${key}`).toMatch(/^checkpoint_(damaged|too_new)$/);
      }
      await store.put(key, whole);
    }
    expect(await load()).toEqual(CONTENT);
  });

  it("moves no object to another place: of another checkpoint, sandbox, tenant or cluster", async () => {
    const bed = await openBed();
    const { store, checkpointStore, saved, keysOf, bytesOf, owner, load } = bed;
    await checkpointStore.save(owner, "c", saved);
    const [manifest = ""] = await keysOf("checkpoints/");
    const [chunk = ""] = await keysOf("chunks/");
    const whole = await bytesOf(manifest);
    const other = { id: createSandboxId(), tenant: "others" };
    for (const key of [`checkpoints/${owner.id}/d.json`, `checkpoints/${other.id}/c.json`]) await store.put(key, whole);
    expect(await rejection(load(owner, "d"))).toMatchObject(damaged);
    expect(await rejection(load(other))).toMatchObject(damaged);
    // The record in another tenant's state cannot name this checkpoint.
    expect(await rejection(load({ ...owner, tenant: "others" }))).toMatchObject(damaged);
    await checkpointStore.save(other, "c", saved);
    const foreign = (await keysOf("chunks/")).find((key) => key !== chunk) ?? "";
    await store.put(chunk, await bytesOf(foreign));
    expect(await rejection(load())).toMatchObject(damaged);
    const elsewhere = new Keyring({ secrets: ["the secret"], salt: "another cluster" });
    const theirs = await openBed(new MemoryStore(), elsewhere);
    await theirs.checkpointStore.save(owner, "c", saved);
    await store.put(manifest, await theirs.bytesOf(manifest));
    expect(await rejection(load())).toMatchObject(damaged);
  });

  it("does not crash a node, or make it write elsewhere, with what a misbehaving member encrypts", async () => {
    const { store, checkpointStore, saved, keysOf, owner, load } = await openBed();
    await checkpointStore.save(owner, "c", saved);
    const [key = ""] = await keysOf("checkpoints/");
    const file = (fields: object) => ({ name: "image", size: 0, chunks: [], ...fields });
    const lists: readonly unknown[] = [
      [file({}), file({})],
      [file({ size: 0, chunks: [{ zero: 4096 }, { zero: -4096 }] })],
      [file({ size: 2 ** 52, chunks: [{ zero: 2 ** 52 }] })],
      [file({ size: -1, chunks: [{ zero: -1 }] })],
      [file({ name: ".." })],
      "not a list",
    ];
    for (const files of lists) {
      const manifest = { version: 2, sandbox: owner.id, tenant: owner.tenant, secretId: keyring.currentId, files };
      await store.put(key, sealObject(keyring, key, Buffer.from(JSON.stringify(manifest))));
      expect(await rejection(load()), JSON.stringify(files)).toMatchObject(damaged);
    }
    const state = `states/${owner.id}.state`;
    const content = savedSandboxJson({ record: sandboxRecord(owner), requirements: {}, checkpoints: [] }, undefined);
    for (const text of ["{", JSON.stringify({ ...content, record: { ...sandboxRecord(owner), memoryMib: "much" } })]) {
      const states = new SealedStates(store, keyring);
      await states.put(state, Buffer.from(text));
      const peek = new StandaloneOwnership(states).peek(owner.id);
      expect(await rejection(peek)).toMatchObject({ code: "data_loss", reason: "state_damaged" });
    }
  });

  it("does not bring back the unencrypted format of earlier versions", async () => {
    const { store, checkpointStore, saved, keysOf, owner, load } = await openBed();
    await checkpointStore.save(owner, "c", saved);
    const hash = await plantEarlier(store, owner);
    expect(await rejection(load())).toMatchObject(damaged);
    expect((await rejection(load())).message).toContain("not encrypted");
    const [chunk = ""] = await keysOf("chunks/");
    expect(chunk).not.toContain(hash);
    const states = new SealedStates(store, keyring);
    await store.put(`states/${owner.id}.state`, Buffer.from("{}"));
    const error = await rejection(states.get(`states/${owner.id}.state`));
    expect(error).toMatchObject({ code: "data_loss", reason: "object_damaged" });
    expect(await rejection(rewriteData({ store, keyring, acceptUnprotected: false }))).toMatchObject({
      reason: "object_damaged",
    });
  });

  it("reveals no environment, and changes no state that a node then uses", async () => {
    await using nodes = new StoreNodes();
    const node = await nodes.start("a", new MockProvider());
    const { id } = await node.create({ env: { TOKEN: "hunter2" } });
    const store = node.store as DirectoryStore;
    const key = `states/${id}.state`;
    await node.request("POST", `/v1/sandboxes/${id}/pause`);
    await node.drain();
    const whole = Buffer.from((await store.get(key))?.bytes ?? []);
    for (const text of ["hunter2", "TOKEN", "tenant", "record"]) expect(whole.includes(text)).toBe(false);
    for (const bytes of Object.values(changesTo(whole))) {
      await store.put(key, bytes);
      const response = await node.request("POST", `/v1/sandboxes/${id}/resume`);
      const body = await response.json();
      expect(body).toMatchObject({ reason: expect.stringMatching(/^(object_damaged|state_too_new)$/) });
      expect(JSON.stringify(body), "shows no caller the store or its objects").not.toMatch(/states\/|file:|store-/);
    }
    await store.put(key, whole);
    expect((await node.request("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
  });
});

describe("uploadedBytes", () => {
  it("does not depend on what other tenants have stored", async () => {
    const { checkpointStore, saved, owner, keysOf } = await openBed();
    const first = await checkpointStore.save(owner, "c", saved);
    const other = await checkpointStore.save({ id: createSandboxId(), tenant: "other" }, "c", saved);
    const same = await checkpointStore.save({ id: createSandboxId(), tenant: "mine" }, "c", saved);
    expect(Math.abs(other.uploadedBytes - first.uploadedBytes)).toBeLessThan(10);
    expect(same.uploadedBytes).toBeLessThan(first.uploadedBytes / 1.2);
    const [one = "", two = ""] = await keysOf("chunks/");
    expect(one).not.toBe(two);
    const plain = createHash("sha256").update(CONTENT).digest("hex");
    expect([one, two].some((key) => key.endsWith(plain))).toBe(false);
  });
});

describe("a rewrite of the store", () => {
  it("encrypts what an earlier version stored, and finishes after an interruption", async () => {
    const { store, keysOf, bytesOf, owner, load } = await openBed();
    await plantEarlier(store, owner);
    await store.put(`states/${owner.id}.state`, Buffer.from(JSON.stringify({ record: { tenant: "mine" } })));
    const options = { store, keyring, acceptUnprotected: true };
    expect(await rewriteData(options)).toBe(2);
    await rewriteData(options);
    expect(await load()).toEqual(CONTENT);
    for (const key of [...(await keysOf("states/")), ...(await keysOf("checkpoints/"))]) {
      expect((await bytesOf(key))[0]).toBe(2);
    }
  });

  it("names the object that cannot be read, and changes nothing", async () => {
    const { store, owner } = await openBed();
    const key = `states/${owner.id}.state`;
    await store.put(key, Buffer.concat([Buffer.of(2), randomBytes(60)]));
    const options = { store, keyring, acceptUnprotected: true };
    expect(await rejection(rewriteData(options))).toMatchObject({ reason: "object_damaged", details: { key } });
    await store.put(key, Buffer.from(JSON.stringify({ record: { tenant: "mine" } })));
    const manifest = `checkpoints/${owner.id}/c.json`;
    await store.put(manifest, Buffer.from("{}"));
    expect(await rejection(rewriteData(options))).toMatchObject({
      reason: "object_damaged",
      details: { key: manifest },
    });
  });

  it("replaces a secret: both open the data before, only the new one is needed after", async () => {
    const { store, checkpointStore, saved, owner } = await openBed();
    await checkpointStore.save(owner, "c", saved);
    const state = Buffer.from(JSON.stringify({ content: { record: { tenant: "mine" } } }));
    await new SealedStates(store, keyring).put(`states/${owner.id}.state`, state);
    const both = keyringOf("the new secret", "the secret");
    const between = await openBed(store, both);
    expect(await between.load(owner)).toEqual(CONTENT);
    await between.checkpointStore.copy(owner, "c", "copy");
    await rewriteData({ store, keyring: both, acceptUnprotected: false });
    const after = await openBed(store, keyringOf("the new secret"));
    expect(await after.load(owner)).toEqual(CONTENT);
    expect(await after.load(owner, "copy")).toEqual(CONTENT);
  });
});

/** Stores CONTENT as an earlier version did. Resolves to the address of its chunk. */
async function plantEarlier(store: MemoryStore, { id }: { readonly id: string }): Promise<string> {
  const hash = createHash("sha256").update(CONTENT).digest("hex");
  await store.put(`chunks/${hash.slice(0, 2)}/${hash}`, Buffer.concat([Buffer.of(0), CONTENT]));
  const files = [{ name: "image", size: CONTENT.length, chunks: [{ hash, size: CONTENT.length }] }];
  await store.put(`checkpoints/${id}/c.json`, Buffer.from(JSON.stringify({ version: 1, sandbox: id, files })));
  return hash;
}
