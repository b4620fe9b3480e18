import { mkdtempSync, rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, type ObjectStore, stateKey, systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import type { CheckpointResource } from "@sandpiper/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { StandaloneOwnership } from "../ownership/standalone-ownership.ts";
import { hashesOf } from "../store/checkpoint-files.ts";
import { openManifest } from "../store/checkpoint-manifest.ts";
import { CheckpointStore } from "../store/checkpoint-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { testKeyring as keyring } from "../testing/test-keyring.ts";
import { BackupWriter } from "./backup-writer.ts";
import { copySandbox } from "./copy-sandbox.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-copy-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Does not wait. */
const clock: Clock = { ...systemClock, schedule: (_, work) => systemClock.schedule(0, work) };

/** A sandbox with two checkpoints, and what a node does with them. */
async function openBed() {
  const store = new MemoryStore();
  const checkpoints = new CheckpointStore({ store, keyring, clock, directory: join(root, "tmp") });
  const ownership = new StandaloneOwnership(new SealedStates(store, keyring));
  const record = sandboxRecord();
  const commit = async (listed: readonly CheckpointResource[]) =>
    (await ownership.state(record.id)).commit({ record, requirements: {}, checkpoints: listed });
  const listed = async () => (await ownership.peek(record.id))?.checkpoints ?? [];
  const collectGarbage = async () => {
    const used = new Set<string>();
    for await (const { key } of store.list("checkpoints/"))
      for (const hash of await hashesIn(store, key)) used.add(hash);
    for await (const { key } of store.list("chunks/")) if (!used.has(key.slice(-64))) await store.delete(key);
  };
  const save = async () => {
    const directory = await mkdtemp(join(root, "d-"));
    await writeFile(join(directory, "image"), crypto.randomUUID());
    const id = crypto.randomUUID();
    const { sizeBytes, uploadedBytes } = await checkpoints.save(record, id, directory);
    const createdAt = new Date().toISOString();
    const about = { name: null, createdAt, isAutomatic: false, fidelity: "memory", requirements: {} } as const;
    const checkpoint = { id, sandboxId: record.id, ...about, sizeBytes, uploadedBytes, pausedMs: 1, expiresAt: null };
    await commit([...(await listed()), checkpoint]);
  };
  const removeOldest = async () => {
    const [oldest, ...rest] = await listed();
    await commit(rest);
    await checkpoints.remove(record.id, oldest?.id ?? "");
    await collectGarbage();
  };
  const destroy = async () => {
    await checkpoints.removeAll(record.id);
    await collectGarbage();
    await ownership.remove(record.id);
  };
  await save();
  await save();
  return { store, record, save, removeOldest, destroy, collectGarbage };
}

async function hashesIn(store: ObjectStore, key: string, prefix = ""): Promise<readonly string[]> {
  const stored = await store.get(prefix + key);
  const opened = stored && openManifest(keyring, key, stored.bytes);
  return opened !== undefined && "manifest" in opened ? [...hashesOf(opened.manifest.files)] : [];
}

/** Does something before the store's call of that number. */
function interrupted(store: ObjectStore, at: number, work: () => Promise<void>) {
  let calls = 0;
  const before = async () => {
    if (++calls === at) await work();
  };
  const hooked: ObjectStore = {
    label: store.label,
    get: (key) => before().then(() => store.get(key)),
    head: (key) => before().then(() => store.head(key)),
    put: (key, bytes, condition) => store.put(key, bytes, condition),
    delete: (key, condition) => store.delete(key, condition),
    list: (prefix) => store.list(prefix),
  };
  return { hooked, calls: () => calls };
}

async function copy(source: ObjectStore, id: Parameters<typeof copySandbox>[0]) {
  const target = new MemoryStore();
  const writer = new BackupWriter(target, () => {});
  const result = await copySandbox(id, { source, kind: "home", keyring, clock, writer });
  const missing: string[] = [];
  for (const { key } of writer.objects) {
    if (!key.startsWith("objects/checkpoints/")) continue;
    const hashes = await hashesIn(target, key.slice("objects/".length), "objects/");
    for (const hash of hashes) {
      if ((await target.get(`chunks/${hash.slice(0, 2)}/${hash}`)) === undefined) missing.push(hash);
    }
  }
  return { result, missing, keys: writer.objects.map(({ key }) => key) };
}

type Bed = Awaited<ReturnType<typeof openBed>>;
const events: readonly [string, (bed: Bed) => Promise<void>][] = [
  ["a checkpoint is saved", ({ save }) => save()],
  ["a checkpoint is deleted and its chunks are collected", ({ removeOldest }) => removeOldest()],
  [
    "all checkpoints are replaced",
    async ({ save, removeOldest }) => {
      await save();
      await removeOldest();
      await removeOldest();
    },
  ],
];

describe("a copy of a sandbox", () => {
  it.each(events)("is complete if, at any call to the store, %s", async (_, event) => {
    let positions = 0;
    for (let at = 1; ; at += 1) {
      const bed = await openBed();
      const { hooked, calls } = interrupted(bed.store, at, () => event(bed));
      const { result, missing, keys } = await copy(hooked, bed.record.id);
      if (calls() < at) break;
      positions += 1;
      expect(result, `before call ${at}`).toMatchObject({ damaged: [] });
      const { checkpoints } = result as { readonly checkpoints: readonly CheckpointResource[] };
      const manifests = checkpoints.map(({ id }) => `objects/checkpoints/${bed.record.id}/${id}.json`);
      expect(keys.sort()).toEqual([...manifests, `objects/${stateKey(bed.record.id)}`].sort());
      expect([checkpoints.length > 0, missing]).toEqual([true, []]);
    }
    expect(positions).toBeGreaterThan(4);
  });

  it("is complete or absent if the sandbox is destroyed at any call to the store", async () => {
    const results = new Set<string>();
    for (let at = 1; ; at += 1) {
      const bed = await openBed();
      const { hooked, calls } = interrupted(bed.store, at, bed.destroy);
      const { result, missing } = await copy(hooked, bed.record.id);
      if (calls() < at) break;
      if (result !== undefined) expect(result, `before call ${at}`).toMatchObject({ damaged: [] });
      expect(missing).toEqual([]);
      results.add(result === undefined ? "absent" : "complete");
    }
    expect(results).toEqual(new Set(["absent"]));
  });

  it("leaves a damaged checkpoint out, and reports it", async () => {
    const { store, record } = await openBed();
    const [chunk] = await Array.fromAsync(store.list("chunks/"));
    await store.put(chunk?.key ?? "", Buffer.from("damaged"));
    const { result, keys } = await copy(store, record.id);
    expect(result).toMatchObject({ checkpoints: [{}], damaged: [{}] });
    expect(keys.filter((key) => key.includes("/checkpoints/"))).toHaveLength(1);
  });
});
