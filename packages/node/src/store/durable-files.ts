import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/** Checkpoints hold whatever was in a sandbox's memory. */
const PRIVATE_DIRECTORY = 0o700;
const PRIVATE_FILE = 0o600;

/** Writes a file that must not be there yet; its bytes are on the disk when this returns, its name is once its directory is synced. */
export async function writeNewFile(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, "wx", PRIVATE_FILE);
  try {
    if (parts.length === 0) return;
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    const { bytesWritten } = await file.writev(parts);
    // A disk that fills up takes a part and says nothing.
    if (bytesWritten !== total)
      throw Object.assign(new Error(`${path} could be written in part only`), { code: "ENOSPC" });
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Makes a directory and those above it, so that they are still there after a loss of power. */
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
