import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectStore } from "@sandpiper/core";
import { walk } from "../../bench/walk.ts";
import type { Random } from "./random.ts";

type Repair = () => Promise<void>;

/** Longer than any other fault of the same round, such as a full disk of the store. */
const INSIST_MS = 30_000;
const PAUSE_MS = 200;

/** Repeats a change that the store refuses, for example because its disk is full. */
async function insist<Result>(change: () => Promise<Result>): Promise<Result> {
  const endAt = performance.now() + INSIST_MS;
  for (;;) {
    try {
      return await change();
    } catch (thrown) {
      if (performance.now() > endAt) throw thrown;
      await sleep(PAUSE_MS);
    }
  }
}

export interface DamagedObjectsOptions {
  readonly store: ObjectStore;
  /** Of a store in a directory, where chunks are plain files. */
  readonly directory: string | undefined;
  readonly random: Random;
}

/** Flips a bit in stored objects. Disposing puts back those that no node has replaced, like an operator with a backup. */
export class DamagedObjects implements AsyncDisposable {
  readonly #options: DamagedObjectsOptions;
  readonly #repairs: Repair[] = [];

  constructor(options: DamagedObjectsOptions) {
    this.#options = options;
  }

  /** Damages all objects with the prefix. Resolves to their number. */
  async flip(prefix: string): Promise<number> {
    const found = await Array.fromAsync(this.#options.store.list(prefix), ({ key }) => key);
    return await this.#flipAll(found);
  }

  async flipNewestChunks(count: number): Promise<number> {
    const { store, directory } = this.#options;
    if (directory !== undefined) return await this.#flipNewestFiles(join(directory, "chunks"), count);
    const found = await Array.fromAsync(store.list("chunks/"));
    found.sort((one, other) => other.modifiedAt.getTime() - one.modifiedAt.getTime());
    return await this.#flipAll(found.slice(0, count).map(({ key }) => key));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#repairs.map((repair) => repair()));
  }

  async #flipAll(keys: readonly string[]): Promise<number> {
    const flipped = await Promise.all(keys.map((key) => this.#flipObject(key)));
    return flipped.filter(Boolean).length;
  }

  async #flipObject(key: string): Promise<boolean> {
    const { store } = this.#options;
    const before = await store.get(key);
    if (before === undefined || before.bytes.length === 0) return false;
    const damaged = this.#flipped(before.bytes);
    const tag = await insist(() => store.put(key, damaged, { ifMatch: before.tag }));
    if (tag === undefined) return false;
    this.#repairs.push(() => insist(async () => void (await store.put(key, before.bytes, { ifMatch: tag }))));
    return true;
  }

  async #flipNewestFiles(directory: string, count: number): Promise<number> {
    const files = (await walk(directory)).filter((entry) => entry.isFile());
    const paths = files.map((entry) => join(entry.parentPath, entry.name));
    const found = await Promise.all(
      paths.map(async (path) => ({ path, mtimeMs: (await stat(path).catch(() => undefined))?.mtimeMs ?? 0 })),
    );
    found.sort((one, other) => other.mtimeMs - one.mtimeMs);
    const newest = found.slice(0, count);
    for (const { path } of newest) await this.#flipFile(path);
    return newest.length;
  }

  async #flipFile(path: string): Promise<void> {
    const at = this.#options.random.next();
    const flip = async () => {
      await using file = await open(path, "r+");
      const { size } = await file.stat();
      const byte = Buffer.alloc(1);
      const position = Math.floor(at * size);
      await file.read(byte, 0, 1, position);
      byte[0] = (byte[0] ?? 0) ^ 1;
      await file.write(byte, 0, 1, position);
    };
    await flip();
    // A node may have removed the chunk.
    this.#repairs.push(() => flip().catch(() => undefined));
  }

  #flipped(bytes: Uint8Array): Uint8Array {
    const { random } = this.#options;
    const changed = Uint8Array.from(bytes);
    const at = random.between(0, bytes.length - 1);
    changed[at] = (changed[at] ?? 0) ^ (1 << random.between(0, 7));
    return changed;
  }
}
