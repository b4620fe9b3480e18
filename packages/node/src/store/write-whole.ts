import type { FileHandle } from "node:fs/promises";

/** Writes all of the bytes, starting at `position`. */
export async function writeWhole(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}
