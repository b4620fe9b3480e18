import type { CheckpointFile } from "../store/checkpoint-files.ts";
import type { ChunkSession } from "../store/chunk-store.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";
import type { TenantChunks } from "../store/tenant-chunks.ts";

const PARALLEL = 8;

export interface CopyChunksOptions {
  readonly from: ChunkSession;
  /** Undefined to read and check the chunks only. */
  readonly to: ChunkSession | undefined;
  readonly tenant: TenantChunks;
  /** Chunks that need not be copied again; copied ones are added. */
  readonly known: Set<string>;
  readonly onBytes: (bytes: number) => void;
}

/** Copies the chunks of a checkpoint, and decrypts each to check it. Resolves to the address of one that is missing or damaged. */
export async function copyChunks(
  files: readonly CheckpointFile[],
  { from, to, tenant, known, onBytes }: CopyChunksOptions,
): Promise<string | undefined> {
  const pieces = new Map<string, number>();
  for (const { chunks } of files) {
    for (const piece of chunks) if ("hash" in piece && !known.has(piece.hash)) pieces.set(piece.hash, piece.size);
  }
  let bad: string | undefined;
  await forEachParallel(pieces, PARALLEL, async ([hash, size]) => {
    if (bad !== undefined) return;
    const stored = await from.get(hash);
    if (stored === undefined || (await tenant.decode(hash, stored, size)) === undefined) {
      bad = hash;
      return;
    }
    // A repeated restore finds those of the interrupted one.
    if (to !== undefined && (await to.find(hash)) === undefined) await to.put(hash, [stored]);
    known.add(hash);
    onBytes(stored.length);
  });
  return bad;
}
