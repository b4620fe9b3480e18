import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { hashesOf } from "./checkpoint-files.ts";
import { type Manifest, manifestKey, openManifest, sealManifest } from "./checkpoint-manifest.ts";
import { ChunkedFiles } from "./chunked-files.ts";
import { PrefetchedChunks } from "./prefetched-chunks.ts";
import { TenantChunks } from "./tenant-chunks.ts";

/** More than the checkpoint of a small sandbox needs. */
const MIN_FREE_BYTES = 8 * 1024 * 1024;
/** Prefetched chunks are on the disk twice for a while, and must not fill it. */
const PREFETCH_FREE_FACTOR = 4;

/** The sandbox of a checkpoint. */
export type CheckpointOwner = Pick<SandboxRecord, "id" | "tenant">;

export interface CheckpointStoreOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Holds the files of checkpoints while they are saved or restored. */
  readonly directory: string;
}

export interface SavedSize {
  readonly sizeBytes: number;
  readonly uploadedBytes: number;
}

/** Saves checkpoints to the object store, encrypted with keys of their tenant, and loads them. A sandbox's state lists the checkpoints that count. */
export class CheckpointStore {
  readonly #store: ObjectStore;
  readonly #keyring: Keyring;
  readonly #files: ChunkedFiles;
  readonly #directory: string;
  /** The chunks of each sandbox's newest checkpoint: the store has them, so a save need not look for them. */
  readonly #known = new Map<SandboxId, ReadonlySet<string>>();
  readonly #prefetched = new Map<SandboxId, PrefetchedChunks>();

  constructor({ store, keyring, clock, directory }: CheckpointStoreOptions) {
    this.#store = store;
    this.#keyring = keyring;
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

  async save(owner: CheckpointOwner, checkpoint: string, directory: string): Promise<SavedSize> {
    const known = this.#known.get(owner.id);
    const tenant = this.#chunksOf(owner);
    const { files, sizeBytes, uploadedBytes } = await this.#files.save({ tenant, directory, known });
    const { currentId: secretId } = this.#keyring;
    const manifestBytes = await this.#putManifest(owner, checkpoint, { secretId, files });
    this.#known.set(owner.id, new Set(hashesOf(files)));
    return { sizeBytes, uploadedBytes: uploadedBytes + manifestBytes };
  }

  /** Copies a checkpoint to another id. Resolves to the number of bytes written. */
  async copy(owner: CheckpointOwner, checkpoint: string, target: string): Promise<number> {
    for (;;) {
      const { manifest, tag } = await this.#manifestOf(owner, checkpoint);
      const bytes = await this.#putManifest(owner, target, manifest);
      // A rotation of the secret may have replaced the manifest meanwhile; its earlier chunks then disappear.
      if (!(await this.#isReplaced(owner, checkpoint, tag))) return bytes;
    }
  }

  async load(owner: CheckpointOwner, checkpoint: string, directory: string): Promise<void> {
    for (;;) {
      const { manifest, tag } = await this.#manifestOf(owner, checkpoint);
      const { files } = manifest;
      const prefetched = this.#prefetched.get(owner.id);
      try {
        await this.#files.load(files, { tenant: this.#chunksOf(owner), directory, prefetched });
        this.#known.set(owner.id, new Set(hashesOf(files)));
        return;
      } catch (thrown) {
        // A rotation of the secret replaces the manifest, and garbage collection then deletes its earlier chunks.
        if (!(await this.#isReplaced(owner, checkpoint, tag))) throw thrown;
        for (const { name } of files) await rm(join(directory, name), { force: true });
      }
    }
  }

  /** Downloads the chunks of a checkpoint, so that a later one of the same sandbox loads faster, until `dropPrefetched`. */
  async prefetch(owner: CheckpointOwner, checkpoint: string, signal: AbortSignal): Promise<void> {
    const { files } = (await this.#manifestOf(owner, checkpoint)).manifest;
    const sizeBytes = files.reduce((sum, { size }) => sum + size, 0);
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    if ((await freeBytesAt(this.#directory)) < PREFETCH_FREE_FACTOR * sizeBytes) return;
    const prefetched = this.#prefetched.get(owner.id) ?? (await PrefetchedChunks.open(this.#directory));
    this.#prefetched.set(owner.id, prefetched);
    await this.#files.prefetch(files, { tenant: this.#chunksOf(owner), prefetched, signal });
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
    await this.#store.delete(manifestKey(sandbox, checkpoint));
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
      const { manifest } = await this.#manifest(sandbox as SandboxId, name.replace(/\.json$/, ""));
      yield* hashesOf(manifest.files);
    }
  }

  #chunksOf({ tenant }: CheckpointOwner): TenantChunks {
    return new TenantChunks(this.#keyring, tenant);
  }

  /** Resolves to the number of bytes written. */
  async #putManifest(
    { id: sandbox, tenant }: CheckpointOwner,
    checkpoint: string,
    { secretId, files }: Pick<Manifest, "secretId" | "files">,
  ): Promise<number> {
    const key = manifestKey(sandbox, checkpoint);
    const sealed = sealManifest(this.#keyring, key, { version: 2, sandbox, tenant, secretId, files });
    await this.#store.put(key, sealed);
    return sealed.length;
  }

  async #isReplaced({ id }: CheckpointOwner, checkpoint: string, tag: string): Promise<boolean> {
    const now = await this.#store.head(manifestKey(id, checkpoint));
    return now !== undefined && now.tag !== tag;
  }

  async #manifestOf({ id, tenant }: CheckpointOwner, checkpoint: string): Promise<StoredManifest> {
    const stored = await this.#manifest(id, checkpoint);
    if (stored.manifest.tenant === tenant && stored.manifest.sandbox === id) return stored;
    throw damaged(checkpoint, "its manifest belongs to another sandbox or tenant");
  }

  async #manifest(sandbox: SandboxId, checkpoint: string): Promise<StoredManifest> {
    const key = manifestKey(sandbox, checkpoint);
    const stored = await this.#store.get(key);
    if (stored === undefined) throw damaged(checkpoint, "its manifest is missing");
    const opened = openManifest(this.#keyring, key, stored.bytes);
    if (!("fault" in opened)) return { manifest: opened.manifest, tag: stored.tag };
    if (opened.newer !== undefined) throw tooNew(checkpoint, opened.newer);
    throw damaged(checkpoint, `its manifest cannot be read: ${opened.fault}`);
  }
}

interface StoredManifest {
  readonly manifest: Manifest;
  readonly tag: string;
}

async function freeBytesAt(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Not damaged: the node must not restore an earlier checkpoint instead. */
function tooNew(checkpoint: string, versions: { readonly found: number; readonly known: number }): SandboxError {
  return new SandboxError("checkpoint_too_new", {
    message: `checkpoint ${checkpoint} has format ${versions.found}, but this node reads at most format ${versions.known}; it was not changed`,
    details: versions,
  });
}

function damaged(checkpoint: string, why: string): SandboxError {
  return new SandboxError("checkpoint_damaged", {
    message: `checkpoint ${checkpoint} cannot be restored: ${why}`,
    hint: "restore an earlier checkpoint",
  });
}
