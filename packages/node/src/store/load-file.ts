import { open } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { CheckpointFile } from "./checkpoint-files.ts";
import { MAX_CHUNK_BYTES } from "./chunk-boundaries.ts";
import type { ChunkSession } from "./chunk-store.ts";
import { failedWith } from "./file-error.ts";
import { forEachParallel } from "./for-each-parallel.ts";
import type { PrefetchedChunks } from "./prefetched-chunks.ts";
import type { ChunkForm } from "./tenant-chunks.ts";
import { writeWhole } from "./write-whole.ts";

/** Bounds the memory of a load: each download holds one chunk, compressed and uncompressed. */
const PARALLEL = 12;

/** Manifests are untrusted: a name must not lead out of the directory. */
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

interface PlacedChunk {
  readonly hash: string;
  readonly size: number;
  readonly position: number;
}

export interface LoadFileOptions {
  readonly directory: string;
  readonly session: ChunkSession;
  readonly tenant: ChunkForm;
  readonly prefetched?: PrefetchedChunks | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Writes a file from its chunks. Runs of zeros become holes. */
export async function loadFile(file: CheckpointFile, options: LoadFileOptions): Promise<void> {
  const { directory, prefetched, signal } = options;
  const chunks = placeChunks(file);
  await using target = await open(join(directory, file.name), "wx", 0o600);
  await target.truncate(file.size).catch((thrown: unknown) => {
    throw failedWith(thrown, "EFBIG")
      ? damaged(file.name, `its size of ${file.size} bytes is not possible`, {})
      : thrown;
  });
  await forEachParallel(chunks, PARALLEL, async (chunk) => {
    signal?.throwIfAborted();
    const content = (await prefetched?.read(chunk.hash, chunk.size)) ?? (await getContent(chunk, file.name, options));
    await writeWhole(target, content, chunk.position);
  });
}

export interface PrefetchFileOptions extends Pick<LoadFileOptions, "session" | "tenant"> {
  readonly prefetched: PrefetchedChunks;
  readonly signal: AbortSignal;
}

/** Downloads those chunks of a file that are not prefetched yet. */
export async function prefetchFile(file: CheckpointFile, options: PrefetchFileOptions): Promise<void> {
  const { prefetched, signal } = options;
  const missing = placeChunks(file).filter(({ hash }) => !prefetched.has(hash));
  await forEachParallel(missing, PARALLEL, async (chunk) => {
    signal.throwIfAborted();
    await prefetched.add(chunk.hash, await getContent(chunk, file.name, options));
  });
}

async function getContent(
  { hash, size }: PlacedChunk,
  file: string,
  { session, tenant }: Pick<LoadFileOptions, "session" | "tenant">,
): Promise<Uint8Array> {
  const stored = await session.get(hash);
  if (stored === undefined) throw damaged(file, `chunk ${hash} is missing`, { chunk: hash });
  const content = await tenant.decode(hash, stored, size);
  if (content === undefined) throw damaged(file, `chunk ${hash} is not what a node stored`, { chunk: hash });
  return content;
}

function placeChunks({ name, size, chunks }: CheckpointFile): readonly PlacedChunk[] {
  const placed: PlacedChunk[] = [];
  let position = 0;
  for (const piece of chunks) {
    if ("hash" in piece) placed.push({ ...piece, position });
    position += "hash" in piece ? piece.size : piece.zero;
  }
  const isSound = placed.every((chunk) => /^[0-9a-f]{64}$/.test(chunk.hash) && chunk.size <= MAX_CHUNK_BYTES);
  if (!isSound || position !== size || !SAFE_NAME.test(name)) throw damaged(name, "its manifest entry is invalid", {});
  return placed;
}

function damaged(name: string, why: string, details: Readonly<Record<string, unknown>>): SandboxError {
  return new SandboxError("checkpoint_damaged", {
    message: `cannot load file ${JSON.stringify(name.slice(0, 200))} of the checkpoint: ${why}`,
    details: { file: name, ...details },
  });
}
