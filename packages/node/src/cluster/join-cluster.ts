import { createHmac, hkdfSync, randomUUID, timingSafeEqual } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { z } from "zod";
import type { ClusterSecret } from "./cluster-secret.ts";

const CLUSTER_OBJECT = "cluster.json";
const KEY_BYTES = 32;

const clusterSchema = z.object({ id: z.uuid(), createdAt: z.iso.datetime(), check: z.string() });

/** Derived from the cluster's secret, one key per purpose, so that none reveals another. */
interface ClusterKeys {
  /** Signs sandbox tokens, which are valid on any node. */
  readonly sandboxTokens: Uint8Array;
  /** Signs requests between nodes. */
  readonly nodeProof: Uint8Array;
  /** Stored in the cluster's store, to check the secret of a joining node. */
  readonly check: string;
}

export interface Cluster {
  readonly id: string;
  readonly createdAt: Date;
  readonly keys: ClusterKeys;
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
export async function joinCluster(options: JoinClusterOptions): Promise<Cluster> {
  const { store, secret } = options;
  const existing = await store.get(CLUSTER_OBJECT);
  if (existing !== undefined) return joinExisting(existing.bytes, options);
  const known = secret.find();
  const created = await createCluster(known ?? secret.make(), options);
  if (created !== undefined) return created;
  // Another node created the cluster meanwhile, with another secret.
  if (known === undefined) secret.forget();
  const theirs = await store.get(CLUSTER_OBJECT);
  if (theirs === undefined) throw damaged(store, "it was created and deleted again");
  return joinExisting(theirs.bytes, options);
}

async function createCluster(secret: string, { store, clock }: JoinClusterOptions): Promise<Cluster | undefined> {
  const id = randomUUID();
  const createdAt = clock.now();
  const keys = deriveClusterKeys(secret, id);
  const content = { id, createdAt: createdAt.toISOString(), check: keys.check };
  const tag = await store.put(CLUSTER_OBJECT, Buffer.from(JSON.stringify(content)), { ifAbsent: true });
  return tag === undefined ? undefined : { id, createdAt, keys };
}

function joinExisting(bytes: Uint8Array, { store, secret }: JoinClusterOptions): Cluster {
  const { id, createdAt, check } = parseCluster(bytes, store);
  const known = secret.find();
  if (known === undefined) throw noSecret(store, secret);
  const keys = deriveClusterKeys(known, id);
  const [ours, theirs] = [Buffer.from(keys.check), Buffer.from(check)];
  if (ours.length !== theirs.length || !timingSafeEqual(ours, theirs)) throw wrongSecret(store, secret);
  return { id, createdAt: new Date(createdAt), keys };
}

function deriveClusterKeys(secret: string, clusterId: string): ClusterKeys {
  const key = (purpose: string) =>
    new Uint8Array(hkdfSync("sha256", secret, clusterId, `sandpiper ${purpose}`, KEY_BYTES));
  return {
    sandboxTokens: key("sandbox tokens"),
    nodeProof: key("node proof"),
    check: createHmac("sha256", key("check")).update(clusterId).digest("base64url"),
  };
}

function parseCluster(bytes: Uint8Array, store: ObjectStore): z.infer<typeof clusterSchema> {
  try {
    return clusterSchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch (thrown) {
    throw damaged(store, "it cannot be read", thrown);
  }
}

function damaged({ label }: ObjectStore, why: string, cause?: unknown): SandboxError {
  return new SandboxError("object_damaged", {
    message: `${CLUSTER_OBJECT} in ${label}, which identifies the cluster, is damaged: ${why}; the object was not changed`,
    details: { store: label },
    cause,
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
