import { randomUUID } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { Keyring } from "../auth/keyring.ts";
import { contentOf, signatureFormat, signObject, verifyObject } from "../store/signed-object.ts";
import type { ClusterSecret, ClusterSecrets } from "./cluster-secret.ts";

export const CLUSTER_OBJECT = "cluster.json";
/** The index of a backup. */
export const BACKUP_OBJECT = "backup.json";
/** Exists while a restore writes to the store. */
export const RESTORE_OBJECT = "restoring.json";

const CLUSTER_PREFIXES = ["keys.json", "locks/", "states/", "secrets/", "checkpoints/", "nodes/", "quotas/", "names/"];

/** The format of the store. It increases with a change that earlier versions must not ignore. */
const FORMAT = 1;

const clusterSchema = z.object({
  id: z.uuid(),
  createdAt: z.iso.datetime(),
  /** Absent in stores of earlier versions. */
  format: z.int().default(1),
});

export interface JoinedCluster {
  readonly id: string;
  readonly createdAt: Date;
  readonly keyring: Keyring;
}

export interface JoinClusterOptions {
  readonly store: ObjectStore;
  readonly secret: ClusterSecret;
  readonly clock: Clock;
}

/**
 * Creates the cluster of a store, or joins it with its secret. A node with another secret is refused, and never overwrites
 * anything in the store.
 */
export async function joinCluster(options: JoinClusterOptions): Promise<JoinedCluster> {
  const { store, secret } = options;
  const existing = await store.get(CLUSTER_OBJECT);
  if (existing !== undefined) return joinExisting(existing, options);
  await requireNewStore(store);
  await requireEmpty(store);
  const known = secret.find();
  const created = await createCluster(known ?? secret.make(), options);
  if (created !== undefined) return created;
  // Another node created the cluster meanwhile, with another secret.
  if (known === undefined) secret.forget();
  const theirs = await store.get(CLUSTER_OBJECT);
  if (theirs === undefined) throw damaged(store, "it was created and deleted again");
  return joinExisting(theirs, options);
}

/** Finds the cluster of a store without joining it. Throws `no_cluster` if there is none. */
export async function findCluster(options: Omit<JoinClusterOptions, "clock">): Promise<JoinedCluster> {
  const { store } = options;
  const existing = await store.get(CLUSTER_OBJECT);
  if (existing !== undefined) return joinExisting(existing, options);
  await requireNewStore(store);
  throw new SandboxError("no_cluster", {
    message: `${store.label} holds no cluster`,
    hint: "set SANDPIPER_STORE to the store of the cluster",
  });
}

/** A new cluster in a backup would delete its chunks as garbage; one in a half-restored store would hide what is restored. */
async function requireNewStore(store: ObjectStore): Promise<void> {
  const { label } = store;
  if ((await store.head(BACKUP_OBJECT)) !== undefined) {
    throw new SandboxError("store_is_backup", { message: `${label} is a backup`, details: { store: label } });
  }
  if ((await store.head(RESTORE_OBJECT)) !== undefined) {
    const message = `a restore into ${label} has not finished`;
    throw new SandboxError("restore_unfinished", { message, details: { target: label } });
  }
}

/** Without its identity, no node could verify or read what a cluster has stored. A new one would hide that for good. */
async function requireEmpty(store: ObjectStore): Promise<void> {
  for (const prefix of CLUSTER_PREFIXES) {
    for await (const { key } of store.list(prefix)) {
      // Another node may have created the cluster meanwhile.
      if ((await store.head(CLUSTER_OBJECT)) !== undefined) return;
      throw new SandboxError("cluster_identity_missing", {
        message: `${store.label} holds objects of a cluster, such as ${key}, but not ${CLUSTER_OBJECT}, which identifies it; nothing was changed there`,
        details: { store: store.label, key },
      });
    }
  }
}

async function createCluster(
  secrets: ClusterSecrets,
  { store, clock }: JoinClusterOptions,
): Promise<JoinedCluster | undefined> {
  const id = randomUUID();
  const createdAt = clock.now();
  const keyring = new Keyring({ secrets, salt: id });
  const content = Buffer.from(JSON.stringify({ id, createdAt: createdAt.toISOString(), format: FORMAT }));
  const name = { key: CLUSTER_OBJECT, sequence: createdAt.getTime() };
  const tag = await store.put(CLUSTER_OBJECT, signObject(keyring, name, content), { ifAbsent: true });
  return tag === undefined ? undefined : { id, createdAt, keyring };
}

/** The keys depend on the cluster's id, so the id is read before the signature over it can be checked. */
function joinExisting(
  { bytes, tag }: { readonly bytes: Uint8Array; readonly tag: string },
  { store, secret }: Omit<JoinClusterOptions, "clock">,
): JoinedCluster {
  const content = contentOf(bytes);
  if (content === undefined) {
    const found = signatureFormat(bytes);
    if (found !== undefined) throw tooNew(store, { found, known: FORMAT });
    throw isJson(bytes) ? notMigrated(store) : damaged(store, "it cannot be read");
  }
  const { id, createdAt, format } = parseCluster(content, store);
  if (format > FORMAT) throw tooNew(store, { found: format, known: FORMAT });
  const secrets = secret.find();
  if (secrets === undefined) throw noSecret(store, secret);
  const keyring = new Keyring({ secrets, salt: id });
  const verified = verifyObject(keyring, CLUSTER_OBJECT, bytes);
  if (!("fault" in verified)) return { id, createdAt: new Date(createdAt), keyring };
  if (verified.fault === "unknown secret") throw wrongSecret(store, secret);
  throw new SandboxError("object_forged", {
    message: `${CLUSTER_OBJECT} in ${store.label}, which identifies the cluster, has an invalid signature`,
    details: { key: CLUSTER_OBJECT, store: store.label, tag },
  });
}

function parseCluster(bytes: Uint8Array, store: ObjectStore): z.infer<typeof clusterSchema> {
  try {
    return clusterSchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch (thrown) {
    throw damaged(store, "it cannot be read", thrown);
  }
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes).toString());
    return true;
  } catch {
    return false;
  }
}

function tooNew({ label }: ObjectStore, versions: { readonly found: number; readonly known: number }): SandboxError {
  return new SandboxError("store_too_new", {
    message: `the store ${label} has format ${versions.found}, but this node supports at most format ${versions.known}; nothing was changed there`,
    details: { store: label, ...versions },
  });
}

function damaged({ label }: ObjectStore, why: string, cause?: unknown): SandboxError {
  return new SandboxError("object_damaged", {
    message: `${CLUSTER_OBJECT} in ${label}, which identifies the cluster, is damaged: ${why}; the object was not changed`,
    details: { store: label },
    cause,
  });
}

function notMigrated({ label }: ObjectStore): SandboxError {
  return new SandboxError("store_not_migrated", {
    message: `${CLUSTER_OBJECT} in ${label} has no signature: an earlier version of Sandpiper wrote this store, or another program changed it`,
    details: { store: label },
  });
}

function noSecret({ label }: ObjectStore, { path }: ClusterSecret): SandboxError {
  return new SandboxError("no_cluster_secret", {
    message: `${label} belongs to a cluster whose secret this node does not have`,
    hint: `set SANDPIPER_CLUSTER_SECRET to the cluster's secret, or copy cluster-secret from the home of its first node to ${path}`,
    details: { store: label },
  });
}

function wrongSecret({ label }: ObjectStore, { path }: ClusterSecret): SandboxError {
  return new SandboxError("wrong_cluster_secret", {
    message: `this node's secret does not match the cluster in ${label}; nothing was changed there`,
    hint: `use the same clusterSecret (or ${path}) as the cluster's other nodes, or another store`,
    details: { store: label },
  });
}
