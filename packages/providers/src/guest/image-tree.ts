import { createHash } from "node:crypto";
import { lstatSync, readdirSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";

/** The size and file count of a directory, and a version that changes with its content. */
export interface ImageTree {
  readonly version: string;
  readonly entries: number;
  readonly dataBytes: number;
}

const BLOCK_BYTES = 4096;

/** Reads metadata but no content: ten thousand files take a tenth of a second. */
export async function readImageTree(root: string): Promise<ImageTree> {
  const hash = createHash("sha256");
  let [entries, dataBytes] = [0, 0];
  const pending = [root];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    await nextTurn();
    for (const name of readdirSync(directory).sort()) {
      const path = `${directory}/${name}`;
      const info = lstatSync(path, { throwIfNoEntry: false });
      if (info === undefined) continue;
      const { mode, uid, gid, size, ino, mtimeMs, ctimeMs } = info;
      hash.update(JSON.stringify([path.slice(root.length), mode, uid, gid, size, ino, mtimeMs, ctimeMs]));
      entries += 1;
      dataBytes += Math.max(1, Math.ceil(size / BLOCK_BYTES)) * BLOCK_BYTES;
      if (info.isDirectory()) pending.push(path);
    }
  }
  const { mode, uid, gid } = lstatSync(root);
  hash.update(JSON.stringify([mode, uid, gid]));
  return { version: hash.digest("hex"), entries, dataBytes };
}
