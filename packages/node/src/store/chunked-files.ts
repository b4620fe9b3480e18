import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { BufferPool } from "./buffer-pool.ts";
import type { CheckpointFile } from "./checkpoint-files.ts";
import type { ChunkSession, ChunkStore } from "./chunk-store.ts";
import { type CollectGarbageOptions, type CollectGarbageResult, collectGarbage } from "./collect-garbage.ts";
import { DirectoryStore } from "./directory-store.ts";
import { loadFile, prefetchFile } from "./load-file.ts";
import { ObjectChunks } from "./object-chunks.ts";
import type { PrefetchedChunks } from "./prefetched-chunks.ts";
import { saveFile } from "./save-file.ts";
import type { ChunkForm } from "./tenant-chunks.ts";

const DEFAULT_GRACE_MS = 3_600_000;

const BUFFER_BYTES = 4 * 1024 * 1024;
/** Shared by all saves of this node. */
const BUFFERS = 10;

const MIN_FREED_BYTES = 64 * 1024;

export interface ChunkedFilesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** How long an unreferenced chunk is kept: a save may be about to write a manifest that refers to it. */
  readonly graceMs?: number;
}

export interface SaveOptions {
  readonly tenant: ChunkForm;
  /** Holds the files to save, and no directories. */
  readonly directory: string;
  /** Chunks of a committed manifest of the same sandbox, which must stay until the manifest of this save is committed. */
  readonly known?: ReadonlySet<string> | undefined;
}

export interface LoadOptions {
  readonly tenant: ChunkForm;
  /** Must exist. */
  readonly directory: string;
  readonly prefetched?: PrefetchedChunks | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SavedCheckpoint {
  readonly files: readonly CheckpointFile[];
  readonly sizeBytes: number;
  /** The stored size of the new chunks. */
  readonly uploadedBytes: number;
  readonly uploadedChunks: number;
}

export interface PrefetchOptions {
  readonly tenant: ChunkForm;
  readonly prefetched: PrefetchedChunks;
  readonly signal: AbortSignal;
}

/** Stores the files of checkpoints as chunks, each chunk of a tenant once. The caller stores the manifests. */
export class ChunkedFiles {
  readonly #store: ObjectStore;
  readonly #chunks: ChunkStore;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #pool = new BufferPool({ bufferBytes: BUFFER_BYTES, buffers: BUFFERS });

  constructor(options: ChunkedFilesOptions) {
    this.#store = options.store;
    this.#chunks = chunksIn(options.store);
    this.#clock = options.clock;
    this.#graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
  }

  /** Once this resolves, all chunks are durable. The caller has a quarter of the grace period to commit a manifest. */
  async save({ tenant, directory, known }: SaveOptions): Promise<SavedCheckpoint> {
    const startedAtMs = this.#clock.monotonicMs();
    const session = this.#chunks.openSession();
    const uploads = new Uploads({ session, tenant, known, isYoung: (at) => this.#isYoung(at) });
    try {
      const files: CheckpointFile[] = [];
      for (const name of (await readdir(directory)).sort()) {
        const hashOf = (content: Uint8Array) => tenant.hashOf(content);
        const keep = (hash: string, content: Uint8Array) => uploads.keep(hash, content);
        files.push(await saveFile(join(directory, name), { pool: this.#pool, hashOf, keep }));
      }
      await session.commit();
      // Chunks that were young when the save began may be old enough for garbage collection by now.
      if (this.#clock.monotonicMs() - startedAtMs > this.#graceMs / 4) throw tooSlow(this.#graceMs / 4);
      const sizeBytes = files.reduce((sum, { size }) => sum + size, 0);
      return { files, sizeBytes, uploadedBytes: uploads.bytes, uploadedChunks: uploads.count };
    } catch (thrown) {
      await session.discard();
      throw SandboxError.from(thrown);
    }
  }

  /** Writes the files to a directory. Fails if one of them exists. */
  async load(files: readonly CheckpointFile[], options: LoadOptions): Promise<void> {
    const session = this.#chunks.openSession();
    try {
      requireDifferentNames(files);
      for (const file of files) await loadFile(file, { ...options, session });
    } catch (thrown) {
      throw SandboxError.from(thrown);
    }
  }

  /** Downloads the chunks of these files, for a later load of files that share most of them. */
  async prefetch(files: readonly CheckpointFile[], options: PrefetchOptions): Promise<void> {
    const session = this.#chunks.openSession();
    for (const file of files) await prefetchFile(file, { ...options, session });
  }

  collectGarbage(options: Pick<CollectGarbageOptions, "referenced">): Promise<CollectGarbageResult> {
    return collectGarbage({ ...options, store: this.#store, chunks: this.#chunks, graceMs: this.#graceMs });
  }

  #isYoung(modifiedAt: Date): boolean {
    return this.#clock.now().getTime() - modifiedAt.getTime() < this.#graceMs / 2;
  }
}

export function chunksIn(store: ObjectStore): ChunkStore {
  return store instanceof DirectoryStore ? store.chunks : new ObjectChunks(store);
}

interface UploadsOptions extends Pick<SaveOptions, "tenant" | "known"> {
  readonly session: ChunkSession;
  readonly isYoung: (modifiedAt: Date) => boolean;
}

/** The chunks of one save, each sent at most once. */
class Uploads {
  readonly #options: UploadsOptions;
  readonly #started = new Map<string, Promise<void>>();
  bytes = 0;
  count = 0;

  constructor(options: UploadsOptions) {
    this.#options = options;
  }

  keep(hash: string, content: Uint8Array): Promise<void> {
    if (this.#options.known?.has(hash)) return Promise.resolve();
    const upload = this.#started.get(hash) ?? this.#upload(hash, content);
    this.#started.set(hash, upload);
    return upload;
  }

  async #upload(hash: string, content: Uint8Array): Promise<void> {
    const { session, tenant, isYoung } = this.#options;
    const stored = await session.find(hash);
    // An old chunk may be deleted before a manifest refers to it; another write renews it.
    if (stored !== undefined && isYoung(stored.modifiedAt)) return;
    const parts = await tenant.encode(hash, content);
    this.bytes += parts.reduce((sum, part) => sum + part.length, 0);
    await session.put(hash, parts);
    for (const part of parts) freeMemory(part);
    this.count += 1;
  }
}

function requireDifferentNames(files: readonly CheckpointFile[]): void {
  if (new Set(files.map(({ name }) => name)).size === files.length) return;
  throw new SandboxError("checkpoint_damaged", {
    message: "cannot load the checkpoint: its manifest lists a file twice",
  });
}

/** Much memory outside the heap makes the garbage collector run often, which costs as much as the encryption. */
function freeMemory({ buffer, byteLength }: Uint8Array): void {
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (isOwn && byteLength >= MIN_FREED_BYTES) buffer.transfer(0);
}

function tooSlow(limitMs: number): SandboxError {
  return new SandboxError("checkpoint_too_slow", {
    message: `the checkpoint was not saved: uploading it took longer than ${limitMs} ms`,
  });
}
