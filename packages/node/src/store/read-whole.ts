import type { FileHandle } from "node:fs/promises";

/** Reads all bytes of a file that does not change. */
export async function readWhole(file: FileHandle): Promise<{ readonly bytes: Uint8Array; readonly modifiedAt: Date }> {
  const { size, mtime } = await file.stat();
  const bytes = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return { bytes: bytes.subarray(0, filled), modifiedAt: mtime };
}
