import { mkdir, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { failedWith } from "./file-error.ts";

/** Checkpoints contain the memory of sandboxes, and so their secrets. */
const PRIVATE_DIRECTORY = 0o700;
const PRIVATE_FILE = 0o600;

/** Writes a new file and syncs its content. Its name is durable once the caller syncs the directory. */
export async function writeNewFile(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, "wx", PRIVATE_FILE);
  try {
    if (parts.length === 0) return;
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    const { bytesWritten } = await file.writev(parts);
    // A disk that fills up accepts a part without an error.
    if (bytesWritten !== total)
      throw Object.assign(new Error(`wrote only ${bytesWritten} of ${total} bytes to ${path}`), { code: "ENOSPC" });
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

/** False if the file does not exist. */
export async function unlinkExisting(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (thrown) {
    if (failedWith(thrown, "ENOENT")) return false;
    throw thrown;
  }
}

/** Creates a directory and its parents so that they survive a power loss. */
export async function makeDurableDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: PRIVATE_DIRECTORY });
  if (first === undefined) return;
  for (let directory = path; directory.length >= first.length; directory = dirname(directory)) {
    await syncDirectory(dirname(directory));
  }
}

export async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: PRIVATE_DIRECTORY });
}
