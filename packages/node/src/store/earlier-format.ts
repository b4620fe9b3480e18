import { hash } from "node:crypto";
import { z } from "zod";
import type { CheckpointFile } from "./checkpoint-files.ts";
import { manifestFileSchema } from "./checkpoint-manifest.ts";
import { unpackChunk } from "./chunk-codec.ts";

/** What earlier versions stored in clear text: a node reads it only to encrypt it. */
const manifestSchema = z.object({ version: z.literal(1), files: z.array(manifestFileSchema).readonly() });

export function isUnprotected(stored: Uint8Array): boolean {
  return stored[0] === "{".charCodeAt(0);
}

/** Undefined if the bytes are not such a manifest. */
export function parseEarlierManifest(stored: Uint8Array): readonly CheckpointFile[] | undefined {
  try {
    return manifestSchema.parse(JSON.parse(Buffer.from(stored).toString())).files;
  } catch {
    return undefined;
  }
}

/** Undefined if the bytes do not decode to content with this size and SHA-256. */
export async function decodeEarlierChunk(
  expected: string,
  stored: Uint8Array,
  size: number,
): Promise<Uint8Array | undefined> {
  const content = await unpackChunk(stored.subarray(1), stored[0] ?? -1, size);
  return content?.length === size && hash("sha256", content, "hex") === expected ? content : undefined;
}
