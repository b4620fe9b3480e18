import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { type CheckpointFile, hashesOf } from "./checkpoint-files.ts";
import { ChunkedFiles } from "./chunked-files.ts";
import { PrefetchedChunks } from "./prefetched-chunks.ts";

/** More than the checkpoint of a small sandbox needs. */
const MIN_FREE_BYTES = 8 * 1024 * 1024;
/** Prefetched chunks are on the disk twice for a while, and must not fill it. */
const PREFETCH_FREE_FACTOR = 4;

const fileSchema = z.object({
  name: z.string().regex(/^[^/\0]+$/),
  size: z.int(),
  chunks: z.array(z.union([z.object({ hash: z.string(), size: z.int() }), z.object({ zero: z.int() })])),
});
const manifestSchema = z.object({
  version: z.literal(1),
  sandbox: sandboxIdSchema,
  files: z.array(fileSchema),
});

export interface CheckpointStoreOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Holds the files of checkpoints while they are saved or restored. */
  readonly directory: string;
}

export interface SavedSize {
  readonly sizeBytes: number;
  readonly uploadedBytes: number;
}

/** Saves checkpoints to the object store and loads them. A sandbox's state lists the checkpoints that count. */
export class CheckpointStore {
  readonly #store: ObjectStore;
  readonly #files: ChunkedFiles;
  readonly #directory: string;
  /** The chunks of each sandbox's newest checkpoint: the store has them, so a save need not look for them. */
  readonly #known = new Map<SandboxId, ReadonlySet<string>>();
  readonly #prefetched = new Map<SandboxId, PrefetchedChunks>();

  constructor({ store, clock, directory }: CheckpointStoreOptions) {
    this.#store = store;
    this.#files = new ChunkedFiles({ store, clock });
    this.#directory = directory;
  }

  /** An empty directory for the files of a checkpoint; disposing it deletes it. */
  async scratch(): Promise<AsyncDisposable & { readonly path: string }> {
    const path = join(this.#directory, crypto.randomUUID());
    await mkdir(path, { recursive: true, mode: 0o700 });
    await this.#requireRoom(path);
    return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
  }

  /** A runtime that runs out of disk during a save may break more than the checkpoint. */
  async #requireRoom(path: string): Promise<void> {
    const freeBytes = await freeBytesAt(path);
    if (freeBytes >= MIN_FREE_BYTES) return;
    await rm(path, { recursive: true, force: true });
    throw new SandboxError("disk_full", {
      message: `nothing was saved or restored: the node's disk has ${freeBytes} bytes left, and at least ${MIN_FREE_BYTES} are needed`,
      details: { freeBytes, minFreeBytes: MIN_FREE_BYTES },
    });
  }

  /** Deletes files that an earlier process of this node left. */
  async clear(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  async save(sandbox: SandboxId, checkpoint: string, directory: string): Promise<SavedSize> {
    const known = this.#known.get(sandbox);
    const { files, sizeBytes, uploadedBytes } = await this.#files.save({ directory, known });
    const manifest = Buffer.from(JSON.stringify({ version: 1, sandbox, files }));
    await this.#store.put(keyOf(sandbox, checkpoint), manifest);
    this.#known.set(sandbox, new Set(hashesOf(files)));
    return { sizeBytes, uploadedBytes: uploadedBytes + manifest.length };
  }

  /** Copies a checkpoint to another id. Resolves to the number of bytes written. */
  async copy(sandbox: SandboxId, checkpoint: string, target: string): Promise<number> {
    const stored = await this.#store.get(keyOf(sandbox, checkpoint));
    if (stored === undefined) throw damaged(checkpoint, "its manifest is missing");
    await this.#store.put(keyOf(sandbox, target), stored.bytes);
    return stored.bytes.length;
  }

  async load(sandbox: SandboxId, checkpoint: string, directory: string): Promise<void> {
    const files = await this.#manifest(sandbox, checkpoint);
    await this.#files.load(files, directory, { prefetched: this.#prefetched.get(sandbox) });
    this.#known.set(sandbox, new Set(hashesOf(files)));
  }

  /** Downloads the chunks of a checkpoint, so that a later one of the same sandbox loads faster, until `dropPrefetched`. */
  async prefetch(sandbox: SandboxId, checkpoint: string, signal: AbortSignal): Promise<void> {
    const files = await this.#manifest(sandbox, checkpoint);
    const sizeBytes = files.reduce((sum, { size }) => sum + size, 0);
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    if ((await freeBytesAt(this.#directory)) < PREFETCH_FREE_FACTOR * sizeBytes) return;
    const prefetched = this.#prefetched.get(sandbox) ?? (await PrefetchedChunks.open(this.#directory));
    this.#prefetched.set(sandbox, prefetched);
    await this.#files.prefetch(files, prefetched, signal);
  }

  async dropPrefetched(sandbox: SandboxId): Promise<void> {
    const prefetched = this.#prefetched.get(sandbox);
    this.#prefetched.delete(sandbox);
    await prefetched?.[Symbol.asyncDispose]();
  }

  /** The sandbox that a checkpoint belongs to; undefined if the store has no such checkpoint. */
  async sandboxOf(checkpoint: string): Promise<SandboxId | undefined> {
    for await (const { key } of this.#store.list("checkpoints/")) {
      if (key.endsWith(`/${checkpoint}.json`)) return key.split("/")[1] as SandboxId;
    }
    return undefined;
  }

  async remove(sandbox: SandboxId, checkpoint: string): Promise<void> {
    await this.#store.delete(keyOf(sandbox, checkpoint));
  }

  /** Deletes also checkpoints that no state lists, as a crash leaves them. */
  async removeAll(sandbox: SandboxId): Promise<void> {
    for await (const { key } of this.#store.list(`checkpoints/${sandbox}/`)) await this.#store.delete(key);
  }

  /** Call when this node no longer owns the sandbox. */
  forget(sandbox: SandboxId): void {
    this.#known.delete(sandbox);
  }

  /** Deletes chunks that no checkpoint refers to. */
  async collectGarbage(): Promise<void> {
    await this.#files.collectGarbage({ referenced: () => this.#referenced() });
  }

  async *#referenced(): AsyncGenerator<string> {
    for await (const { key } of this.#store.list("checkpoints/")) {
      const [, sandbox, name] = key.split("/");
      if (sandbox === undefined || name === undefined) continue;
      yield* hashesOf(await this.#manifest(sandbox as SandboxId, name.replace(/\.json$/, "")));
    }
  }

  async #manifest(sandbox: SandboxId, checkpoint: string): Promise<readonly CheckpointFile[]> {
    const stored = await this.#store.get(keyOf(sandbox, checkpoint));
    if (stored === undefined) throw damaged(checkpoint, "its manifest is missing");
    try {
      return manifestSchema.parse(JSON.parse(Buffer.from(stored.bytes).toString())).files;
    } catch (thrown) {
      throw damaged(checkpoint, `its manifest cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
}

async function freeBytesAt(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

function keyOf(sandbox: SandboxId, checkpoint: string): string {
  return `checkpoints/${sandbox}/${checkpoint}.json`;
}

function damaged(checkpoint: string, why: string): SandboxError {
  return new SandboxError("checkpoint_damaged", {
    message: `checkpoint ${checkpoint} cannot be restored: ${why}`,
    hint: "restore an earlier checkpoint",
  });
}
