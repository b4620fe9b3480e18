import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import type { BufferPool } from "./buffer-pool.ts";
import type { CheckpointFile, CheckpointPiece } from "./checkpoint-files.ts";
import { cutPages, PAGE_BYTES } from "./chunk-boundaries.ts";

export interface SaveFileOptions {
  readonly pool: BufferPool;
  /** The address of a chunk. */
  readonly hashOf: (content: Uint8Array) => string;
  /** Stores a chunk. Its memory is reused once this resolves. */
  readonly keep: (hash: string, content: Uint8Array) => Promise<void>;
}

/** Cuts a file into chunks and passes them to `keep`. It reads the next buffer while chunks of earlier ones are still being stored. */
export async function saveFile(path: string, { pool, hashOf, keep }: SaveFileOptions): Promise<CheckpointFile> {
  const pieces: CheckpointPiece[] = [];
  const uses: Promise<void>[] = [];
  let failure: PromiseRejectedResult | undefined;
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    for (let position = 0; position < size && failure === undefined; ) {
      const buffer = await pool.take();
      const keeping: Promise<void>[] = [];
      try {
        const filledBytes = Math.min(buffer.length, size - position);
        await fill(file, buffer.subarray(0, filledBytes), position);
        const pagesBytes = Math.ceil(filledBytes / PAGE_BYTES) * PAGE_BYTES;
        buffer.fill(0, filledBytes, pagesBytes);
        const words = new Uint32Array(buffer.buffer, 0, pagesBytes / 4);
        let usedBytes = 0;
        for (const { start, end, isHole } of cutPages(words, position + filledBytes === size)) {
          usedBytes = Math.min(end * PAGE_BYTES, filledBytes);
          const content = buffer.subarray(start * PAGE_BYTES, usedBytes);
          if (isHole) {
            addHole(pieces, content.length);
            continue;
          }
          const hash = hashOf(content);
          pieces.push({ hash, size: content.length });
          keeping.push(keep(hash, content));
        }
        position += usedBytes;
      } finally {
        uses.push(
          Promise.allSettled(keeping).then((outcomes) => {
            pool.give(buffer);
            failure ??= outcomes.find((outcome) => outcome.status === "rejected");
          }),
        );
      }
    }
    await Promise.all(uses);
    if (failure !== undefined) throw failure.reason;
    return { name: basename(path), size, chunks: pieces };
  } finally {
    await Promise.all(uses);
    await file.close();
  }
}

/** Merges a hole with the one before it, which ended at the end of a buffer. */
function addHole(pieces: CheckpointPiece[], size: number): void {
  const last = pieces.at(-1);
  if (last !== undefined && "zero" in last) pieces[pieces.length - 1] = { zero: last.zero + size };
  else pieces.push({ zero: size });
}

async function fill(file: FileHandle, target: Uint8Array, position: number): Promise<void> {
  for (let filled = 0; filled < target.length; ) {
    const { bytesRead } = await file.read(target, filled, target.length - filled, position + filled);
    if (bytesRead === 0) throw new Error("a file of the checkpoint was truncated while it was saved");
    filled += bytesRead;
  }
}
