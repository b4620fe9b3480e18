import type { Clock, LockView, ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { KeyRecord } from "../auth/api-key.ts";
import { SandboxTokens } from "../auth/sandbox-tokens.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { advertisedUrl } from "./advertised-url.ts";
import { ClusterSecret } from "./cluster-secret.ts";
import { joinCluster } from "./join-cluster.ts";
import { openNodeId } from "./node-id.ts";
import { NodeProof } from "./node-proof.ts";
import { NodeRegistry } from "./node-registry.ts";
import { sendNudge } from "./nudge.ts";
import { RequestForwarder } from "../forward/request-forwarder.ts";
import { SharedKeyService } from "./shared-key-service.ts";
import { SharedQuotas } from "./shared-quotas.ts";

export interface OpenClusterOptions {
  readonly config: NodeConfig;
  readonly store: ObjectStore;
  readonly version: string;
  /** The keys that this node has had of its own. */
  readonly ownKeys: readonly KeyRecord[];
  readonly clock: Clock;
  readonly describe: () => { readonly isDraining: boolean; readonly sandboxes: number };
  /** Who holds a sandbox, by its lock. */
  readonly readLock: (id: SandboxId) => Promise<LockView | undefined>;
  readonly onError: (error: SandboxError) => void;
}

/** Joins the cluster of a store, and gives what a node needs to be one of it. `registry.start()` shows it to the others. */
export async function openCluster(options: OpenClusterOptions) {
  const { config, store, version, ownKeys, clock, describe, readLock, onError } = options;
  const { home, leaseMs, maxSkewMs } = config;
  await using undo = new AsyncDisposableStack();
  const node = { id: openNodeId(home), url: advertisedUrl(config) };
  const secret = new ClusterSecret({ home, configured: config.clusterSecret });
  const cluster = await joinCluster({ store, secret, clock });
  const proof = new NodeProof({ key: cluster.keys.nodeProof, node, clock });
  const keys = undo.use(new SharedKeyService({ store, home, own: ownKeys, clock, onError }));
  await keys.open();
  const registry = new NodeRegistry({
    store,
    node: { ...node, version },
    clock,
    leaseMs,
    maxSkewMs,
    describe,
    onError,
  });
  const quotas = new SharedQuotas({
    store,
    nodeId: node.id,
    clock,
    hasQuota: (keyId) => keys.hasQuota(keyId),
    isNodeAlive: (id) => registry.isAlive(id),
    exists: async (id) => (await readLock(id)) !== undefined,
    onError,
  });
  undo.defer(() => quotas.stop());
  const forwarder = undo.use(new RequestForwarder({ proof, clock, recheckMs: leaseMs }));
  const owned = undo.move();
  return {
    node,
    tokens: new SandboxTokens(cluster.keys.sandboxTokens),
    keys,
    quotas,
    registry,
    proof,
    forwarder,
    nudge: (url: string, id: SandboxId) => sendNudge(url, id, proof),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
