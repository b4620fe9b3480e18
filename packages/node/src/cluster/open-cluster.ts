import { type Clock, FencedStates, Leases, type ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { SandboxTokens } from "../auth/sandbox-tokens.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { SignedStore } from "../store/signed-store.ts";
import { advertisedUrl } from "./advertised-url.ts";
import { ClusterSecret } from "./cluster-secret.ts";
import { joinCluster } from "./join-cluster.ts";
import { openNodeId } from "./node-id.ts";
import { NodeProof } from "./node-proof.ts";
import { type NodeDescription, NodeRegistry } from "./node-registry.ts";
import { sendNudge } from "./nudge.ts";
import { SharedKeyService } from "./shared-key-service.ts";
import { SharedQuotas } from "./shared-quotas.ts";
import type { ClusterKeys } from "./stored-keys.ts";

/** How long an owner may take to save a sandbox that another node waits for. */
const CHECKPOINT_BUDGET_MS = 30_000;

export interface OpenClusterOptions {
  readonly config: NodeConfig;
  readonly store: ObjectStore;
  readonly version: string;
  /** The keys and quotas this node had before it joined. */
  readonly ownKeys: ClusterKeys;
  readonly clock: Clock;
  readonly describe: () => NodeDescription;
  readonly onError: (error: SandboxError) => void;
}

export type Cluster = Awaited<ReturnType<typeof openCluster>>;

/** Joins the cluster of a store. The other nodes see this one after `registry.start()`. */
export async function openCluster(options: OpenClusterOptions) {
  const { config, store, version, ownKeys, clock, describe, onError } = options;
  const { home, leaseMs, maxSkewMs } = config;
  await using undo = new AsyncDisposableStack();
  const node = { id: openNodeId(home), url: advertisedUrl(config) };
  const { clusterSecret: configured, acceptedClusterSecrets: accepted } = config;
  const secret = new ClusterSecret({ home, configured, accepted });
  const { id, keyring } = await joinCluster({ store, secret, clock });
  const control = new SignedStore({ store, keyring, clock });
  const proof = new NodeProof({ keys: keyring.keys("node proof"), node, clock });
  const nudge = (url: string, id: SandboxId) => sendNudge(url, id, proof);
  const keys = undo.use(
    new SharedKeyService({
      store: control,
      clusterId: id,
      home,
      own: ownKeys,
      clock,
      onError,
      beforeLimit: (account) => quotas.reset(account),
    }),
  );
  await keys.open();
  const registry = new NodeRegistry({
    store: control,
    node: { ...node, version },
    clock,
    leaseMs,
    maxSkewMs,
    describe,
    onError,
  });
  const onFailure = (thrown: unknown) => onError(SandboxError.from(thrown));
  const timing = { durationMs: leaseMs, maxSkewMs, checkpointBudgetMs: CHECKPOINT_BUDGET_MS };
  const sealed = new SealedStates(control, keyring);
  const leases = new Leases({ ...timing, store: sealed, node, clock, nudge, onError: onFailure });
  const quotas: SharedQuotas = new SharedQuotas({
    store: control,
    nodeId: node.id,
    clock,
    quotas: keys,
    isNodeAlive: (id) => registry.isAlive(id),
    exists: async (id) => (await leases.read(id)) !== undefined,
    onError,
  });
  undo.defer(() => quotas.stop());
  const owned = undo.move();
  return {
    node,
    store,
    /** Signs and verifies objects that nodes share. */
    control,
    keyring,
    tokens: new SandboxTokens(keyring.keys("sandbox tokens")),
    keys,
    quotas,
    registry,
    proof,
    nudge,
    leases,
    states: new FencedStates({ store: sealed, clock, leases, onError: onFailure }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
