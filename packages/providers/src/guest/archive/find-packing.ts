import { open } from "node:fs/promises";

/** How a tar archive is compressed. */
export type Packing = "none" | "gzip" | "zstd";

const MAGIC: readonly (readonly [Packing, number, string])[] = [
  ["gzip", 0, "1f8b"],
  ["zstd", 0, "28b52ffd"],
  ["none", 257, Buffer.from("ustar").toString("hex")],
];

/** Detects the compression from the first bytes; undefined for other files. */
export async function findPacking(path: string): Promise<Packing | undefined> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0);
  const head = buffer.subarray(0, bytesRead);
  return MAGIC.find(([, at, bytes]) => head.toString("hex", at, at + bytes.length / 2) === bytes)?.[0];
}
