import { createHash } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import { BACKUP_OBJECT } from "../cluster/join-cluster.ts";
import { openObject, sealObject } from "../store/sealed-objects.ts";
import { contentOf, signObject, verifyObject } from "../store/signed-object.ts";

/** Holds copies of the store's objects under their own keys. */
export const OBJECTS = "objects/";
/** Holds the files of a home, encrypted, in pieces. */
export const FILES = "files/";
/** The secret of the node or cluster, if the operator chose to include it. */
export const SECRET = "secret";

const sandboxSchema = z.object({
  id: sandboxIdSchema,
  tenant: z.string(),
  name: z.string().nullable(),
  /** The newest checkpoint in the backup: the sandbox continues from it. */
  checkpoint: z.object({ id: z.uuid(), createdAt: z.iso.datetime() }),
});

const leftOutSchema = z.object({
  id: sandboxIdSchema,
  tenant: z.string().nullable(),
  name: z.string().nullable(),
  why: z.string(),
});

const contentSchema = z.object({
  sandboxes: z.array(sandboxSchema),
  /** Sandboxes that existed and cannot be restored from this backup. */
  leftOut: z.array(leftOutSchema),
  /** Checkpoints that could not be read: other ones of their sandboxes are in the backup. */
  damaged: z.array(z.object({ sandbox: sandboxIdSchema, checkpoint: z.string() })),
  /** Everything in the backup except chunks, which manifests name, and the secret. */
  objects: z.array(z.object({ key: z.string(), size: z.int(), sha256: z.hex().length(64) })),
  chunks: z.int(),
  /** The stored size of chunks and objects. */
  bytes: z.int(),
});

/** Readable without the secret, to find the right one. */
const headerSchema = z.object({
  version: z.literal(1),
  id: z.uuid(),
  kind: z.enum(["home", "store"]),
  /** Null for the home of a standalone node. */
  clusterId: z.uuid().nullable(),
  createdAt: z.iso.datetime(),
  hasSecret: z.boolean(),
});

/** The content is encrypted: it names sandboxes and tenants. */
const storedSchema = headerSchema.extend({ content: z.base64() });

export type BackupHeader = z.infer<typeof headerSchema>;
export type BackupContent = z.infer<typeof contentSchema>;
export type BackupIndex = BackupHeader & BackupContent;
export type LeftOutSandbox = z.infer<typeof leftOutSchema>;
export type BackupObject = BackupContent["objects"][number];

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Written last: without it, the rest is not a backup. */
export async function writeIndex(
  backup: ObjectStore,
  keyring: Keyring,
  { header, content }: { readonly header: BackupHeader; readonly content: BackupContent },
): Promise<void> {
  const sealed = sealObject(keyring, BACKUP_OBJECT, Buffer.from(JSON.stringify(content)));
  const stored = { ...header, content: Buffer.from(sealed).toString("base64") };
  const name = { key: BACKUP_OBJECT, sequence: Date.parse(header.createdAt) };
  await backup.put(BACKUP_OBJECT, signObject(keyring, name, Buffer.from(JSON.stringify(stored))));
}

export interface ClosedIndex {
  readonly header: BackupHeader;
  /** Throws unless a node with this keyring wrote the index. */
  open(keyring: Keyring): BackupIndex;
}

/** The header says which keyring opens the index, so it is read first. */
export async function readIndex(backup: ObjectStore): Promise<ClosedIndex> {
  const stored = await backup.get(BACKUP_OBJECT);
  if (stored === undefined) {
    throw new SandboxError("backup_not_found", {
      message: `${backup.label} is not a backup, or the backup was interrupted: ${BACKUP_OBJECT} is missing`,
      details: { backup: backup.label },
    });
  }
  const signed = contentOf(stored.bytes);
  const parsed = storedSchema.safeParse(signed && parseJson(signed));
  if (!parsed.success) throw damagedBackup(backup, BACKUP_OBJECT, "it cannot be read");
  const { content: sealed, ...header } = parsed.data;
  return {
    header,
    open: (keyring) => {
      const verified = verifyObject(keyring, BACKUP_OBJECT, stored.bytes);
      if ("fault" in verified && verified.fault === "unknown secret") throw wrongSecret(backup);
      const opened = openObject(keyring, BACKUP_OBJECT, Buffer.from(sealed, "base64"));
      const content = "fault" in opened ? undefined : contentSchema.safeParse(parseJson(opened.content)).data;
      if ("fault" in verified || content === undefined) {
        throw damagedBackup(backup, BACKUP_OBJECT, "its signature is invalid");
      }
      return { ...header, ...content };
    },
  };
}

/** Reads an object that the index lists, and throws if it is not what was written. */
export async function readObject(backup: ObjectStore, { key, sha256: expected }: BackupObject): Promise<Uint8Array> {
  const stored = await backup.get(key);
  if (stored === undefined) throw damagedBackup(backup, key, "it is missing");
  if (sha256(stored.bytes) !== expected) throw damagedBackup(backup, key, "its content has changed");
  return stored.bytes;
}

export function damagedBackup({ label }: ObjectStore, key: string, why: string): SandboxError {
  return new SandboxError("backup_damaged", {
    message: `${key} in the backup ${label} is damaged: ${why}`,
    details: { backup: label, key },
  });
}

function wrongSecret({ label }: ObjectStore): SandboxError {
  return new SandboxError("backup_secret_wrong", {
    message: `the secret does not match the backup ${label}`,
    details: { backup: label },
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}
