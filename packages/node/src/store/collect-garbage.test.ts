import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ObjectStore, systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { testTenant as tenant } from "../testing/test-keyring.ts";
import { type CheckpointFile, hashesOf } from "./checkpoint-files.ts";
import { ChunkedFiles } from "./chunked-files.ts";
import { DirectoryStore } from "./directory-store.ts";
import { RunningClock } from "./testing/running-clock.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-garbage-"));
afterAll(() => rm(root, { recursive: true, force: true }));

/** The content is incompressible, so no zlib thread takes part and RunningClock sees all work in progress. */
async function directoryWith(...contents: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(root, "d-"));
  for (const [index, content] of contents.entries()) {
    await writeFile(
      join(directory, `f${index}`),
      createHash("shake256", { outputLength: 8192 }).update(content).digest(),
    );
  }
  return directory;
}

async function* nothingReferenced(): AsyncIterable<string> {}

interface AgingStore {
  readonly store: ObjectStore;
  /** Makes all objects in the store older than the grace period. */
  age(): Promise<void>;
}

const stores: readonly [string, () => Promise<AgingStore>][] = [
  [
    "a directory",
    async () => {
      const directory = await mkdtemp(join(root, "s-"));
      const longAgo = new Date(Date.now() - 7_200_000);
      const age = async () => {
        const entries = await readdir(join(directory, "chunks"), { recursive: true, withFileTypes: true });
        const files = entries.filter((entry) => entry.isFile());
        await Promise.all(files.map(({ parentPath, name }) => utimes(join(parentPath, name), longAgo, longAgo)));
      };
      return { store: new DirectoryStore(directory), age };
    },
  ],
  [
    "objects",
    async () => {
      let behindMs = 7_200_000;
      const clock = { ...systemClock, now: () => new Date(Date.now() - behindMs) };
      const age = async () => {
        behindMs = 0;
      };
      return { store: new MemoryStore({ clock }), age };
    },
  ],
];

describe.each(stores)("collecting garbage in %s", (_, openStore) => {
  const isLoadable = async (chunkedFiles: ChunkedFiles, files: readonly CheckpointFile[]) =>
    chunkedFiles.load(files, { tenant, directory: await mkdtemp(join(root, "l-")) }).then(
      () => true,
      () => false,
    );

  it("deletes old chunks without references, and no others", async () => {
    const { store, age } = await openStore();
    const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
    const used = await chunkedFiles.save({ tenant, directory: await directoryWith("used", "shared") });
    const unused = await chunkedFiles.save({ tenant, directory: await directoryWith("unused", "shared") });
    await age();
    const young = await chunkedFiles.save({ tenant, directory: await directoryWith("young") });
    const referenced = async function* () {
      yield* hashesOf(used.files);
    };
    expect(await chunkedFiles.collectGarbage({ referenced })).toEqual({ deletedChunks: 1, keptChunks: 3 });
    expect(await isLoadable(chunkedFiles, used.files)).toBe(true);
    expect(await isLoadable(chunkedFiles, unused.files)).toBe(false);
    expect(await isLoadable(chunkedFiles, young.files)).toBe(true);
    expect(await chunkedFiles.collectGarbage({ referenced })).toEqual({ deletedChunks: 0, keptChunks: 3 });
  });

  it("keeps a chunk that a save reuses after it was found to be garbage", async () => {
    const { store, age } = await openStore();
    const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
    const directory = await directoryWith("reused");
    await chunkedFiles.save({ tenant, directory });
    await age();
    let again: readonly CheckpointFile[] = [];
    await chunkedFiles.collectGarbage({
      async *referenced() {
        again = (await chunkedFiles.save({ tenant, directory })).files;
        yield "of another";
      },
    });
    expect(await isLoadable(chunkedFiles, again)).toBe(true);
  });

  it("keeps the chunks of a fork whose parent is deleted while the manifests are read", async () => {
    const { store, age } = await openStore();
    const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
    const { files } = await chunkedFiles.save({ tenant, directory: await directoryWith("inherited") });
    await age();
    const manifests = new Map([["parent", files]]);
    await chunkedFiles.collectGarbage({
      async *referenced() {
        yield* hashesOf(manifests.get("fork") ?? []);
        manifests.set("fork", files);
        manifests.delete("parent");
        yield* hashesOf(manifests.get("parent") ?? []);
      },
    });
    expect(await isLoadable(chunkedFiles, files)).toBe(true);
  });
});

it("collects garbage by the store's clock, even on a machine whose clock is hours ahead", async () => {
  const directory = await mkdtemp(join(root, "s-"));
  const store = new DirectoryStore(directory);
  const chunkedFiles = new ChunkedFiles({ store, clock: systemClock });
  await chunkedFiles.save({ tenant, directory: await directoryWith("young") });
  const fast = { ...systemClock, now: () => new Date(Date.now() + 86_400_000) };
  const ahead = new ChunkedFiles({ store, clock: fast });
  expect(await ahead.collectGarbage({ referenced: nothingReferenced })).toEqual({ deletedChunks: 0, keptChunks: 1 });
});

describe("concurrent writers and garbage collectors", () => {
  it.each(Array.from({ length: 10 }, (_, index) => index + 1))(
    "lose no chunk that has a reference (seed %d)",
    async (seed) => {
      const random = randomFrom(seed);
      const clock = new RunningClock();
      const store = new MemoryStore({
        clock,
        fault: ({ operation }) => (operation === "get" ? undefined : { delayMs: random(6), answerDelayMs: random(6) }),
      });
      const graceMs = 400;
      const chunkedFiles = new ChunkedFiles({ store, clock, graceMs });
      const directories = await Promise.all(
        Array.from({ length: 6 }, (_, index) => directoryWith(`some ${index % 3}`, `more ${index % 4}`, "common")),
      );
      const manifests = new Map<string, readonly CheckpointFile[]>();
      const pause = (ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve));
      let writing = 2;
      let working = 0;

      const write = async (name: string) => {
        for (let saves = 0; saves < 20; ) {
          const known = new Set(hashesOf(manifests.get(name) ?? []));
          const directory = directories[random(directories.length)] ?? "";
          const saved = await chunkedFiles.save({ tenant, directory, known }).catch(() => undefined);
          // A save that took too long is not committed.
          if (saved === undefined) continue;
          saves += 1;
          await pause(random(graceMs / 5));
          manifests.set(name, saved.files);
          if (random(3) === 0) manifests.set(`fork of ${name}`, saved.files);
          await pause(random(1.5 * graceMs));
          if (random(3) === 0) manifests.delete(random(2) === 0 ? name : `fork of ${name}`);
        }
        writing -= 1;
      };
      const collect = async () => {
        while (writing > 0) {
          await chunkedFiles.collectGarbage({
            async *referenced() {
              for (const name of ["fork of b", "a", "fork of a", "b"]) {
                await pause(random(10));
                yield* hashesOf(manifests.get(name) ?? []);
              }
            },
          });
          for (const [name, files] of manifests) {
            for (const hash of hashesOf(files)) {
              const isThere = (await peek(store, hash)) || manifests.get(name) !== files;
              expect(isThere, `seed ${seed}: ${name} lost ${hash}`).toBe(true);
            }
          }
          await pause(random(graceMs / 4));
        }
      };
      const tasks = [write("a"), write("b"), collect(), collect()].map((task) => {
        working += 1;
        return task.finally(() => {
          working -= 1;
        });
      });
      const all = Promise.all(tasks);
      all.catch(() => {});
      await clock.run(() => working === 0);
      await all;
    },
  );
});

async function peek(store: ObjectStore, hash: string): Promise<boolean> {
  return (await store.get(`chunks/${hash.slice(0, 2)}/${hash}`)) !== undefined;
}

function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
