import { type ObjectStore, SandboxError, type StoredObject } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import type { CheckpointFile } from "./checkpoint-files.ts";
import { type Manifest, openManifest, sealManifest } from "./checkpoint-manifest.ts";
import { chunksIn } from "./chunked-files.ts";
import { decodeEarlierChunk, isUnprotected, parseEarlierManifest } from "./earlier-format.ts";
import { forEachParallel } from "./for-each-parallel.ts";
import { secretIdOf } from "./sealed-bytes.ts";
import { TenantChunks } from "./tenant-chunks.ts";

const PARALLEL = 4;
/** About 64 MB: the manifest refers to them long before garbage collection looks at them. */
const BATCH_CHUNKS = 128;

export interface RewriteManifestOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  /** The tenant of a sandbox whose manifest is in clear text; undefined to refuse such a manifest. */
  readonly tenantOf: ((sandbox: SandboxId) => Promise<string | undefined>) | undefined;
  readonly onChunks: (chunks: number, bytes: number) => void;
}

/**
 * Encrypts the chunks and the manifest of a checkpoint with the current secret. Nodes may use or delete the checkpoint meanwhile:
 * its manifest always refers to chunks that exist. An interrupted rewrite continues with the chunks that remain. False if there
 * was nothing to rewrite.
 */
export async function rewriteManifest(key: string, options: RewriteManifestOptions): Promise<boolean> {
  const { store } = options;
  for (;;) {
    const stored = await store.get(key);
    const source = stored && (await openSource(key, stored, options));
    if (stored === undefined || source === undefined) return false;
    try {
      if (await rewrite(key, { source, tag: stored.tag }, options)) return true;
    } catch (thrown) {
      // Garbage collection may delete the chunks of a checkpoint that was deleted or rewritten meanwhile.
      if ((await store.head(key))?.tag === stored.tag) throw thrown;
    }
  }
}

interface Source {
  readonly manifest: Manifest;
  readonly tenant: TenantChunks;
  readonly decode: (hash: string, stored: Uint8Array, size: number) => Promise<Uint8Array | undefined>;
  /** The manifest is written after each batch. A manifest in clear text cannot refer to encrypted chunks. */
  readonly batchChunks: number;
}

/** Undefined if the manifest is up to date, or of a sandbox that does not exist. */
async function openSource(
  key: string,
  stored: StoredObject,
  options: RewriteManifestOptions,
): Promise<Source | undefined> {
  const { keyring, store, tenantOf } = options;
  if (isUnprotected(stored.bytes) && tenantOf !== undefined) {
    const sandbox = key.split("/")[1] as SandboxId;
    const owner = await tenantOf(sandbox);
    if (owner === undefined) return undefined;
    const files = earlierFiles(key, stored.bytes, store);
    return {
      manifest: { version: 2, sandbox, tenant: owner, secretId: "", files },
      tenant: new TenantChunks(keyring, owner),
      decode: decodeEarlierChunk,
      batchChunks: Number.POSITIVE_INFINITY,
    };
  }
  const opened = openManifest(keyring, key, stored.bytes);
  if ("fault" in opened) throw notRewritten(key, store, opened.fault);
  const { manifest } = opened;
  if (manifest.secretId === keyring.currentId && secretIdOf(stored.bytes) === keyring.currentId) return undefined;
  const tenant = new TenantChunks(keyring, manifest.tenant);
  const decode: Source["decode"] = (hash, bytes, size) => tenant.decode(hash, bytes, size);
  return { manifest, tenant, decode, batchChunks: BATCH_CHUNKS };
}

function earlierFiles(key: string, bytes: Uint8Array, store: ObjectStore): readonly CheckpointFile[] {
  const files = parseEarlierManifest(bytes);
  if (files === undefined) throw notRewritten(key, store, "it is not a manifest of an earlier version");
  return files;
}

/** False if the manifest has changed meanwhile. */
async function rewrite(
  key: string,
  { source, tag }: { readonly source: Source; readonly tag: string },
  options: RewriteManifestOptions,
): Promise<boolean> {
  const { store, keyring } = options;
  const { manifest, batchChunks } = source;
  const pieces = [...piecesOf(manifest.files)];
  const rewritten = new Map<string, string>();
  for (let next = 0, known = tag; ; ) {
    const batch = pieces.slice(next, next + batchChunks);
    next += batch.length;
    await rewriteChunks(key, { batch, source, rewritten }, options);
    const isLast = next >= pieces.length;
    const secretId = isLast ? keyring.currentId : manifest.secretId;
    const sealed = sealManifest(keyring, key, { ...manifest, secretId, files: renamed(manifest.files, rewritten) });
    const written = await store.put(key, sealed, { ifMatch: known });
    if (written === undefined) return false;
    if (isLast) return true;
    known = written;
  }
}

interface Batch {
  readonly batch: readonly (readonly [hash: string, size: number])[];
  readonly source: Source;
  /** Receives the new address of each chunk. */
  readonly rewritten: Map<string, string>;
}

async function rewriteChunks(
  key: string,
  { batch, source, rewritten }: Batch,
  { store, keyring, onChunks }: RewriteManifestOptions,
): Promise<void> {
  const { tenant, decode } = source;
  const session = chunksIn(store).openSession();
  try {
    await forEachParallel(batch, PARALLEL, async ([hash, size]) => {
      const stored = await session.get(hash);
      // An interrupted rewrite has encrypted it already.
      if (stored !== undefined && secretIdOf(stored) === keyring.currentId) return;
      const content = stored && (await decode(hash, stored, size));
      if (content === undefined) throw notRewritten(key, store, `its chunk ${hash} is missing or damaged`);
      const next = tenant.hashOf(content);
      rewritten.set(hash, next);
      await session.put(next, await tenant.encode(next, content));
      onChunks(1, size);
    });
    await session.commit();
  } catch (thrown) {
    await session.discard();
    throw thrown;
  }
}

/** Each chunk once. */
function piecesOf(files: readonly CheckpointFile[]): ReadonlyMap<string, number> {
  return new Map(
    files.flatMap(({ chunks }) =>
      chunks.flatMap((piece) => ("hash" in piece ? [[piece.hash, piece.size] as const] : [])),
    ),
  );
}

function renamed(files: readonly CheckpointFile[], names: ReadonlyMap<string, string>): CheckpointFile[] {
  return files.map((file) => ({
    ...file,
    chunks: file.chunks.map((piece) =>
      "hash" in piece ? { ...piece, hash: names.get(piece.hash) ?? piece.hash } : piece,
    ),
  }));
}

export function notRewritten(key: string, { label }: ObjectStore, fault: string): SandboxError {
  return new SandboxError("object_damaged", {
    message: `cannot encrypt ${key} in the store ${label} with the current secret: ${fault}; the object was not changed`,
    hint: "delete the checkpoint, or restore the object from a backup, and repeat the command",
    details: { key, store: label },
  });
}
