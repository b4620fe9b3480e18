import { type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import { openObject, sealObject } from "./sealed-objects.ts";

/** File systems allow no larger files. */
const MAX_FILE_BYTES = 2 ** 44;
const sizeSchema = z.int().min(0).max(MAX_FILE_BYTES);

export const manifestFileSchema = z.object({
  name: z.string().regex(/^[^/\0]+$/),
  size: sizeSchema,
  chunks: z
    .array(z.union([z.object({ hash: z.string(), size: sizeSchema }), z.object({ zero: sizeSchema })]))
    .readonly(),
});

const manifestSchema = z.object({
  version: z.literal(2),
  sandbox: sandboxIdSchema,
  tenant: z.string(),
  /** The id of the secret that protects the chunks. */
  secretId: z.string(),
  files: z.array(manifestFileSchema).readonly(),
});

export type Manifest = z.infer<typeof manifestSchema>;

export function manifestKey(sandbox: SandboxId, checkpoint: string): string {
  return `checkpoints/${sandbox}/${checkpoint}.json`;
}

export function sealManifest(keyring: Keyring, key: string, manifest: Manifest): Uint8Array {
  return sealObject(keyring, key, Buffer.from(JSON.stringify(manifest)));
}

/** The fault says why the manifest cannot be read. */
export function openManifest(
  keyring: Keyring,
  key: string,
  stored: Uint8Array,
): { readonly manifest: Manifest } | { readonly fault: string } {
  const opened = openObject(keyring, key, stored);
  if ("fault" in opened) return opened;
  try {
    return { manifest: manifestSchema.parse(JSON.parse(opened.content.toString())) };
  } catch (thrown) {
    return { fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
