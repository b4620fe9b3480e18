import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, type ObjectStore, systemClock } from "@sandpiper/core";
import { MemoryStore, rejection } from "@sandpiper/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { testTenant as tenant } from "../testing/test-keyring.ts";
import { type CheckpointFile, hashesOf } from "./checkpoint-files.ts";
import { ChunkedFiles } from "./chunked-files.ts";
import { DirectoryStore } from "./directory-store.ts";
import { PrefetchedChunks } from "./prefetched-chunks.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-checkpoints-"));
afterAll(() => rm(root, { recursive: true, force: true }));

const MIB = 1024 * 1024;
const freshDirectory = () => mkdtemp(join(root, "d-"));

async function directoryWith(files: Readonly<Record<string, Uint8Array>>): Promise<string> {
  const directory = await freshDirectory();
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(directory, name), bytes);
  return directory;
}

async function loaded(chunkedFiles: ChunkedFiles, files: readonly CheckpointFile[]): Promise<string> {
  const directory = await freshDirectory();
  await chunkedFiles.load(files, { tenant, directory });
  return directory;
}

const stores: readonly [string, () => Promise<ObjectStore>][] = [
  ["a directory", async () => new DirectoryStore(await freshDirectory())],
  ["objects", async () => new MemoryStore()],
];

describe.each(stores)("checkpoints in %s", (_, openStore) => {
  const open = async () => new ChunkedFiles({ store: await openStore(), clock: systemClock });

  it("load byte for byte as saved: random, text, empty, tiny and large files", async () => {
    const chunkedFiles = await open();
    const files = {
      "pages.img": randomBytes(9 * MIB + 4321),
      "state.txt": Buffer.from("all work and no play\n".repeat(400_000)),
      empty: Buffer.alloc(0),
      tiny: Buffer.from("x"),
    };
    const saved = await chunkedFiles.save({ tenant, directory: await directoryWith(files) });
    expect(saved.sizeBytes).toBe(Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0));
    expect(saved.uploadedBytes).toBeLessThan(10 * MIB);
    const copy = await loaded(chunkedFiles, saved.files);
    expect((await readdir(copy)).sort()).toEqual(Object.keys(files).sort());
    for (const [name, bytes] of Object.entries(files)) {
      expect(Buffer.compare(await readFile(join(copy, name)), bytes), name).toBe(0);
    }
  });

  it("store no runs of zeros, and load them as holes", async () => {
    const chunkedFiles = await open();
    const directory = await directoryWith({ "pages.img": randomBytes(100_000) });
    await truncate(join(directory, "pages.img"), 64 * MIB);
    const saved = await chunkedFiles.save({ tenant, directory });
    expect(saved.uploadedBytes).toBeLessThan(110_000);
    expect(saved.files[0]?.chunks.length).toBeLessThanOrEqual(3);
    const copy = join(await loaded(chunkedFiles, saved.files), "pages.img");
    expect(Buffer.compare(await readFile(copy), await readFile(join(directory, "pages.img")))).toBe(0);
    expect((await stat(copy)).blocks * 512).toBeLessThan(2 * MIB);
  });

  it("upload only the chunks around a change, and never an unchanged chunk", async () => {
    const chunkedFiles = await open();
    const image = randomBytes(16 * MIB);
    const first = await chunkedFiles.save({ tenant, directory: await directoryWith({ "pages.img": image }) });
    const known = new Set(hashesOf(first.files));
    for (const seen of [known, undefined]) {
      const again = await chunkedFiles.save({
        tenant,
        directory: await directoryWith({ "pages.img": image }),
        known: seen,
      });
      expect(again).toMatchObject({ uploadedBytes: 0, uploadedChunks: 0, files: first.files });
    }
    const changed = Buffer.concat([image.subarray(0, 5 * MIB), randomBytes(4096), image.subarray(5 * MIB)]);
    const third = await chunkedFiles.save({ tenant, directory: await directoryWith({ "pages.img": changed }), known });
    expect(third.uploadedBytes).toBeLessThan(3 * MIB);
    const copy = await loaded(chunkedFiles, third.files);
    expect(Buffer.compare(await readFile(join(copy, "pages.img")), changed)).toBe(0);
  });

  it("fail to load if a chunk is missing, with its hash in the error", async () => {
    const store = await openStore();
    const chunkedFiles = new ChunkedFiles({ store, clock: systemClock, graceMs: 0 });
    const other = new ChunkedFiles({ store, clock: systemClock });
    const saved = await other.save({ tenant, directory: await directoryWith({ a: randomBytes(2 * MIB) }) });
    const [kept, ...lost] = hashesOf(saved.files);
    const referenced = async function* () {
      yield kept ?? "";
    };
    // The first run may find the chunks as old as the grace period of zero, not older.
    await expect.poll(async () => (await chunkedFiles.collectGarbage({ referenced })).deletedChunks).toBeGreaterThan(0);
    const error = await rejection(other.load(saved.files, { tenant, directory: await freshDirectory() }));
    expect(error).toMatchObject({ code: "data_loss", reason: "checkpoint_damaged" });
    expect(lost).toContain(error.details["chunk"]);
  });

  it("stop loading when the signal aborts", async () => {
    const chunkedFiles = await open();
    const saved = await chunkedFiles.save({ tenant, directory: await directoryWith({ a: randomBytes(MIB) }) });
    expect(
      (
        await rejection(
          chunkedFiles.load(saved.files, { tenant, directory: await freshDirectory(), signal: AbortSignal.abort() }),
        )
      ).code,
    ).toBe("canceled");
  });

  it("never write outside of their directory, even with a hostile manifest", async () => {
    const chunkedFiles = await open();
    for (const name of ["../escape", "/tmp/escape", "a/b", "..", ""]) {
      const loading = chunkedFiles.load([{ name, size: 0, chunks: [] }], { tenant, directory: await freshDirectory() });
      expect(await rejection(loading)).toMatchObject({ reason: "checkpoint_damaged" });
    }
  });
});

describe("prefetched chunks", () => {
  it("are not downloaded again by a load", async () => {
    let gets = 0;
    const store = new MemoryStore({
      fault: ({ operation }) => {
        if (operation === "get") gets += 1;
        return undefined;
      },
    });
    const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
    const image = randomBytes(8 * MIB);
    const early = await chunkedFiles.save({ tenant, directory: await directoryWith({ image }) });
    image.fill("changed", 4 * MIB, 4 * MIB + 100);
    const late = await chunkedFiles.save({ tenant, directory: await directoryWith({ image }) });

    const { signal } = new AbortController();
    const prefetchDirectory = await freshDirectory();
    await using prefetched = await PrefetchedChunks.open(prefetchDirectory);
    expect(await readdir(prefetchDirectory)).toEqual([]);
    await chunkedFiles.prefetch(early.files, { tenant, prefetched, signal });
    await chunkedFiles.prefetch(early.files, { tenant, prefetched, signal });
    expect(gets).toBe([...hashesOf(early.files)].length);
    gets = 0;
    const directory = await freshDirectory();
    await chunkedFiles.load(late.files, { tenant, directory, prefetched });
    expect(gets).toBe(late.uploadedChunks);
    expect(Buffer.compare(await readFile(join(directory, "image")), image)).toBe(0);
  });
});

describe("a truncated or corrupted chunk", () => {
  it("makes the load fail, with its hash in the error", async () => {
    const directory = await freshDirectory();
    const chunkedFiles = new ChunkedFiles({ store: new DirectoryStore(directory), clock: systemClock });
    const text = Buffer.from("some text that repeats\n".repeat(20_000));
    for (const bytes of [randomBytes(MIB), text]) {
      const saved = await chunkedFiles.save({ tenant, directory: await directoryWith({ a: bytes }) });
      const [hash = ""] = hashesOf(saved.files);
      const folder = join(directory, "chunks", hash.slice(0, 2));
      const name = (await readdir(folder)).find((candidate) => candidate.startsWith(hash)) ?? "";
      const whole = await readFile(join(folder, name));
      const flipped = Buffer.from(whole);
      flipped[whole.length >> 1] = (flipped[whole.length >> 1] ?? 0) ^ 1;
      for (const damaged of [whole.subarray(0, -1), whole.subarray(0, 1), Buffer.alloc(0), flipped]) {
        await writeFile(join(folder, name), damaged);
        const error = await rejection(chunkedFiles.load(saved.files, { tenant, directory: await freshDirectory() }));
        expect(error).toMatchObject({ code: "data_loss", reason: "checkpoint_damaged", details: { chunk: hash } });
      }
      await writeFile(join(folder, name), whole);
      await loaded(chunkedFiles, saved.files);
    }
  });
});

describe("a save that fails", () => {
  it("at any call to the store leaves it in a state in which the next save succeeds", async () => {
    const files = { a: randomBytes(2 * MIB), b: Buffer.from("text ".repeat(100_000)) };
    const directory = await directoryWith(files);
    for (let failing = 1; ; failing += 3) {
      let calls = 0;
      let isBroken = true;
      const store = new MemoryStore({
        fault: () => (isBroken && ++calls >= failing ? { fail: calls % 2 === 0 ? "before" : "after" } : undefined),
      });
      const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
      const outcome = await chunkedFiles.save({ tenant, directory }).catch((error) => error);
      if (!(outcome instanceof Error)) break;
      expect(outcome).toMatchObject({ code: "unavailable" });
      isBroken = false;
      const copy = await loaded(chunkedFiles, (await chunkedFiles.save({ tenant, directory })).files);
      for (const [name, bytes] of Object.entries(files)) {
        expect(Buffer.compare(await readFile(join(copy, name)), bytes)).toBe(0);
      }
    }
  });

  it("deletes the files it has staged in a directory store", async () => {
    const storeDirectory = await freshDirectory();
    const chunkedFiles = new ChunkedFiles({ store: new DirectoryStore(storeDirectory), clock: systemClock });
    const directory = await directoryWith({ a: randomBytes(MIB) });
    await mkdir(join(directory, "not-a-file"));
    await rejection(chunkedFiles.save({ tenant, directory }));
    expect(await readdir(join(storeDirectory, "staging%%"))).toEqual([]);
  });

  it("with checkpoint_too_slow took longer than garbage collection allows", async () => {
    let nowMs = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => (nowMs += 600_000) };
    const chunkedFiles = new ChunkedFiles({ store: new MemoryStore(), clock, graceMs: 1_200_000 });
    expect(
      await rejection(chunkedFiles.save({ tenant, directory: await directoryWith({ a: randomBytes(10) }) })),
    ).toMatchObject({ code: "deadline_exceeded", reason: "checkpoint_too_slow" });
  });
});
