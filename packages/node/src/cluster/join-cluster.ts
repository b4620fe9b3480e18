import { randomUUID, timingSafeEqual } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { type ClusterKeys, deriveClusterKeys } from "./cluster-keys.ts";
import type { ClusterSecret } from "./cluster-secret.ts";

const CLUSTER_OBJECT = "cluster.json";

const clusterSchema = z.object({ id: z.uuid(), createdAt: z.iso.datetime(), check: z.string() });

export interface Cluster {
  readonly id: string;
  readonly createdAt: Date;
  readonly keys: ClusterKeys;
}

export interface JoinClusterOptions {
  readonly store: ObjectStore;
  readonly secret: ClusterSecret;
  readonly clock: Clock;
  readonly randomUuid?: (() => string) | undefined;
}

/**
 * Makes the cluster of a store, or joins it with the secret that it was made with. What is in the store is never
 * overwritten: a node with another secret is refused.
 */
export async function joinCluster(options: JoinClusterOptions): Promise<Cluster> {
  const { store, secret } = options;
  const found = await store.get(CLUSTER_OBJECT);
  if (found !== undefined) return joined(found.bytes, options);
  const known = secret.find();
  const made = await makeCluster(known ?? secret.make(), options);
  if (made !== undefined) return made;
  // Another node was first. What was made here opens nothing.
  if (known === undefined) secret.forget();
  const theirs = await store.get(CLUSTER_OBJECT);
  if (theirs === undefined) throw damaged(store, "it appeared and was gone again");
  return joined(theirs.bytes, options);
}

async function makeCluster(secret: string, options: JoinClusterOptions): Promise<Cluster | undefined> {
  const { store, clock, randomUuid = randomUUID } = options;
  const id = randomUuid();
  const createdAt = clock.now();
  const keys = deriveClusterKeys(secret, id);
  const content = { id, createdAt: createdAt.toISOString(), check: keys.check };
  const tag = await store.put(CLUSTER_OBJECT, Buffer.from(JSON.stringify(content)), { ifAbsent: true });
  return tag === undefined ? undefined : { id, createdAt, keys };
}

function joined(bytes: Uint8Array, { store, secret }: JoinClusterOptions): Cluster {
  const { id, createdAt, check } = parseCluster(bytes, store);
  const known = secret.find();
  if (known === undefined) throw noSecret(store, secret);
  const keys = deriveClusterKeys(known, id);
  const [ours, theirs] = [Buffer.from(keys.check), Buffer.from(check)];
  if (ours.length !== theirs.length || !timingSafeEqual(ours, theirs)) throw wrongSecret(store, secret);
  return { id, createdAt: new Date(createdAt), keys };
}

function parseCluster(bytes: Uint8Array, store: ObjectStore): z.infer<typeof clusterSchema> {
  try {
    return clusterSchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch (thrown) {
    throw damaged(store, "it cannot be read", thrown);
  }
}

function damaged({ label }: ObjectStore, why: string, cause?: unknown): SandboxError {
  return new SandboxError("data_loss", {
    reason: "cluster_corrupt",
    message: `${CLUSTER_OBJECT} in ${label}, which says what cluster this is, is damaged: ${why}; it was left as it is`,
    hint: "restore it from a backup of the store",
    details: { store: label },
    cause,
  });
}

function noSecret({ label }: ObjectStore, { path }: ClusterSecret): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "no_cluster_secret",
    message: `${label} belongs to a cluster, and this node was not told its secret`,
    hint: `set SANDPIPER_CLUSTER_SECRET to the cluster's secret, or copy cluster-secret from the home of its first node to ${path}`,
    details: { store: label },
  });
}

function wrongSecret({ label }: ObjectStore, { path }: ClusterSecret): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "wrong_cluster_secret",
    message: `this node's secret is not the one of the cluster in ${label}; nothing was changed there`,
    hint: `give it the same clusterSecret (or ${path}) as the cluster's other nodes, or another store`,
    details: { store: label },
  });
}
