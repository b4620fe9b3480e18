import { type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import { type Fault, newer } from "./sealed-bytes.ts";
import { openObject, sealObject } from "./sealed-objects.ts";

const VERSION = 2;
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
  version: z.literal(VERSION),
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
): { readonly manifest: Manifest } | Fault {
  const opened = openObject(keyring, key, stored);
  if ("fault" in opened) return opened;
  try {
    const content: unknown = JSON.parse(opened.content.toString());
    const { version } = z.looseObject({ version: z.int() }).parse(content);
    if (version > VERSION) return newer({ found: version, known: VERSION });
    return { manifest: manifestSchema.parse(content) };
  } catch (thrown) {
    return { fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
