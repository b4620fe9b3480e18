import { keyResourceSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { keyResource } from "../auth/api-key.ts";
import type { KeyRecord } from "../records/key-record.ts";

const storedKeySchema = keyResourceSchema.extend({ hash: z.hex().length(64) });

/** The cluster's keys in the store, without their text. */
export const keysDocumentSchema = z.object({
  /** Counts changes: a node refuses a version below one that it has seen. Absent in stores of earlier versions. */
  revision: z.int().default(0),
  keys: z.array(storedKeySchema),
});

export type KeysDocument = z.infer<typeof keysDocumentSchema>;

export function storedKey(key: KeyRecord): KeysDocument["keys"][number] {
  return { ...keyResource(key), hash: Buffer.from(key.hash).toString("hex") };
}

export function recordsOfDocument({ keys }: KeysDocument): readonly KeyRecord[] {
  return keys.map((key) => ({
    ...key,
    hash: Buffer.from(key.hash, "hex"),
    createdAt: new Date(key.createdAt),
    expiresAt: key.expiresAt === null ? null : new Date(key.expiresAt),
    revokedAt: key.revokedAt === null ? null : new Date(key.revokedAt),
  }));
}
