import { hash } from "node:crypto";
import { packChunk, unpackChunk } from "../../packages/node/src/store/chunk-codec.ts";
import type { ChunkForm } from "../../packages/node/src/store/tenant-chunks.ts";

/** Chunks in clear text, named and verified by their SHA-256: what encrypted chunks are compared with. */
export const plainChunks: ChunkForm = {
  hashOf: (content) => hash("sha256", content, "hex"),
  async encode(_, content) {
    const { kind, packed } = await packChunk(content);
    return [Buffer.of(kind), packed];
  },
  async decode(expected, stored, size) {
    const content = await unpackChunk(stored.subarray(1), stored[0] ?? -1, size);
    return content?.length === size && hash("sha256", content, "hex") === expected ? content : undefined;
  },
};
