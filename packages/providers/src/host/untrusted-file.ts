import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const { O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * Opens a file in a directory that an emulator can write to. A compromised emulator may put a link there, to make this
 * program read or change another file.
 */
export async function openUntrusted(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | O_NOFOLLOW | O_NONBLOCK);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error(`${path} is not a regular file`);
    if (status.nlink > 1) throw new Error(`${path} is a hard link`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
