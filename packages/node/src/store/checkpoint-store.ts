import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { type CheckpointFile, hashesOf } from "./checkpoint-files.ts";
import type { CheckpointRepository } from "./checkpoint-repository.ts";
import { ChunksAhead } from "./prefetched-chunks.ts";

/** More than a small sandbox's checkpoint takes. */
const MIN_FREE_BYTES = 8 * 1024 * 1024;
/** What is fetched ahead is on the disk twice for a while; it must not be what fills it. */
const SIZES_FREE = 4;

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

export interface CheckpointVaultOptions {
  readonly store: ObjectStore;
  readonly repository: CheckpointRepository;
  /** Where checkpoints are while they are made or restored. */
  readonly directory: string;
}

export interface SavedSize {
  readonly sizeBytes: number;
  readonly uploadedBytes: number;
}

/** Checkpoints as files in the store; which of them count is said in their sandbox's state. */
export class CheckpointVault {
  readonly #options: CheckpointVaultOptions;
  /** What the newest checkpoint of a sandbox consists of: none of it needs to be looked for again. */
  readonly #known = new Map<SandboxId, ReadonlySet<string>>();
  readonly #ahead = new Map<SandboxId, ChunksAhead>();

  constructor(options: CheckpointVaultOptions) {
    this.#options = options;
  }

  /** An empty directory for the files of a checkpoint, removed when it is disposed of. */
  async scratch(): Promise<AsyncDisposable & { readonly path: string }> {
    const path = join(this.#options.directory, crypto.randomUUID());
    await mkdir(path, { recursive: true, mode: 0o700 });
    await this.#requireRoom(path);
    return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
  }

  /** A runtime that runs out of disk in the middle of a save may leave more broken than the checkpoint. */
  async #requireRoom(path: string): Promise<void> {
    const { bavail, bsize } = await statfs(path);
    const freeBytes = bavail * bsize;
    if (freeBytes >= MIN_FREE_BYTES) return;
    await rm(path, { recursive: true, force: true });
    throw new SandboxError("resource_exhausted", {
      reason: "disk_full",
      message: `nothing was saved or restored: the node's disk has ${freeBytes} bytes left, at least ${MIN_FREE_BYTES} are needed`,
      hint: "make room on the disk of the node's home",
      details: { freeBytes, minFreeBytes: MIN_FREE_BYTES },
    });
  }

  /** What an earlier node was working on when it ended. */
  async clear(): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  async save(sandbox: SandboxId, checkpoint: string, directory: string): Promise<SavedSize> {
    const { store, repository } = this.#options;
    const known = this.#known.get(sandbox) ?? new Set();
    const { files, sizeBytes, uploadedBytes } = await repository.save({ directory, known });
    const manifest = Buffer.from(JSON.stringify({ version: 1, sandbox, files }));
    await store.put(keyOf(sandbox, checkpoint), manifest);
    this.#known.set(sandbox, new Set(hashesOf(files)));
    return { sizeBytes, uploadedBytes: uploadedBytes + manifest.length };
  }

  /** The same once more, under another name. Gives the bytes that this took. */
  async copy(sandbox: SandboxId, checkpoint: string, target: string): Promise<number> {
    const { store } = this.#options;
    const stored = await store.get(keyOf(sandbox, checkpoint));
    if (stored === undefined) throw damaged(checkpoint, "its manifest is missing");
    await store.put(keyOf(sandbox, target), stored.bytes);
    return stored.bytes.length;
  }

  async load(sandbox: SandboxId, checkpoint: string, directory: string): Promise<void> {
    const { repository } = this.#options;
    const files = await this.#files(sandbox, checkpoint);
    await repository.load(files, directory, { ahead: this.#ahead.get(sandbox), signal: new AbortController().signal });
    this.#known.set(sandbox, new Set(hashesOf(files)));
  }

  /** Brings here what a checkpoint consists of, for the load of a later one, until `dropAhead`. */
  async fetchAhead(sandbox: SandboxId, checkpoint: string, signal: AbortSignal): Promise<void> {
    const { repository, directory } = this.#options;
    const files = await this.#files(sandbox, checkpoint);
    const sizeBytes = files.reduce((sum, { size }) => sum + size, 0);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const { bavail, bsize } = await statfs(directory);
    if (bavail * bsize < SIZES_FREE * sizeBytes) return;
    const ahead = this.#ahead.get(sandbox) ?? (await ChunksAhead.open(directory));
    this.#ahead.set(sandbox, ahead);
    await repository.fetchAhead(files, ahead, signal);
  }

  async dropAhead(sandbox: SandboxId): Promise<void> {
    const ahead = this.#ahead.get(sandbox);
    this.#ahead.delete(sandbox);
    await ahead?.[Symbol.asyncDispose]();
  }

  /** The sandbox that a checkpoint is of; undefined: there is no such checkpoint. */
  async sandboxOf(checkpoint: string): Promise<SandboxId | undefined> {
    for await (const { key } of this.#options.store.list("checkpoints/")) {
      if (key.endsWith(`/${checkpoint}.json`)) return key.split("/")[1] as SandboxId;
    }
    return undefined;
  }

  async remove(sandbox: SandboxId, checkpoint: string): Promise<void> {
    await this.#options.store.delete(keyOf(sandbox, checkpoint));
  }

  /** Also those that no state names, as after a crash. */
  async removeAll(sandbox: SandboxId): Promise<void> {
    const { store } = this.#options;
    for await (const { key } of store.list(`checkpoints/${sandbox}/`)) await store.delete(key);
  }

  /** It is not this node's any more. */
  forget(sandbox: SandboxId): void {
    this.#known.delete(sandbox);
  }

  /** Deletes what belongs to no checkpoint. */
  async collectGarbage(): Promise<void> {
    await this.#options.repository.collectGarbage({ referenced: () => this.#referenced() });
  }

  async *#referenced(): AsyncGenerator<string> {
    for await (const { key } of this.#options.store.list("checkpoints/")) {
      const [, sandbox, name] = key.split("/");
      if (sandbox === undefined || name === undefined) continue;
      yield* hashesOf(await this.#files(sandbox as SandboxId, name.replace(/\.json$/, "")));
    }
  }

  async #files(sandbox: SandboxId, checkpoint: string): Promise<readonly CheckpointFile[]> {
    const stored = await this.#options.store.get(keyOf(sandbox, checkpoint));
    if (stored === undefined) throw damaged(checkpoint, "its manifest is missing");
    try {
      return manifestSchema.parse(JSON.parse(Buffer.from(stored.bytes).toString())).files;
    } catch (thrown) {
      throw damaged(checkpoint, `its manifest cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
}

function keyOf(sandbox: SandboxId, checkpoint: string): string {
  return `checkpoints/${sandbox}/${checkpoint}.json`;
}

function damaged(checkpoint: string, why: string): SandboxError {
  return new SandboxError("data_loss", {
    reason: "checkpoint_damaged",
    message: `checkpoint ${checkpoint} cannot be restored: ${why}`,
    hint: "restore an earlier one",
  });
}
