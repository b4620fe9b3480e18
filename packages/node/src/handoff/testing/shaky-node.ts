import { FencedStates, Leases, type Provider, type SandboxError } from "@sandpiper/core";
import { FakeClock, MemoryStore, type StoreCall, type StoreFault } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { onTestFinished } from "vitest";
import { SandboxTokens } from "../../auth/sandbox-tokens.ts";
import type { Cluster } from "../../cluster/open-cluster.ts";
import { parseNodeConfig } from "../../config/load-node-config.ts";
import { SealedStates } from "../../store/sealed-states.ts";
import { ScratchHome } from "../../testing/scratch-home.ts";
import { testDomain } from "../../testing/test-domain.ts";
import { testKeyring as keyring } from "../../testing/test-keyring.ts";
import type { HandoffReport } from "../handoff-steps.ts";

export const LEASE_MS = 15_000;

/** The store and clock that the nodes of a test share, with faults that the test sets. */
export class ShakyStore {
  readonly clock = new FakeClock();
  fault: (call: StoreCall) => StoreFault | undefined = () => undefined;
  readonly store = new MemoryStore({ clock: this.clock, fault: (call) => this.fault(call) });
  /** Delivers nudges about prefetched checkpoints, but none about leases. */
  readonly nudged = new Map<string, (id: SandboxId) => void>();

  async keys(prefix: string): Promise<string[]> {
    return (await Array.fromAsync(this.store.list(prefix), ({ key }) => key)).sort();
  }
}

export const owner = {
  kind: "key",
  keyId: "k",
  tenant: "t",
  scopes: ["sandboxes"],
} as const;

/** A node that knows which sandboxes run on it. */
export function startShakyNode<P extends Provider>(shared: ShakyStore, name: string, provider: P) {
  const node = startUnreadyNode(shared, name, provider);
  node.handoffs?.open();
  return node;
}

/** A node of a cluster without HTTP, on a clock that stands still until the test advances it. It stops when the test ends. */
export function startUnreadyNode<P extends Provider>({ store, clock, nudged }: ShakyStore, name: string, provider: P) {
  const errors: SandboxError[] = [];
  const reports: HandoffReport[] = [];
  const deadlines = new Map<string, number | undefined>();
  const node = { id: name, url: `http://${name}` };
  const onError = () => {};
  const sealed = new SealedStates(store, keyring);
  const timing = { durationMs: LEASE_MS, maxSkewMs: 0, checkpointBudgetMs: 1000 };
  const leases = new Leases({ ...timing, store: sealed, node, clock, nudge: async () => {}, onError });
  const states = new FencedStates({ store: sealed, clock, leases, onError });
  const quotas = { reserve: async () => undefined, resize: async () => {}, ended: () => {}, hold: () => {} };
  const tokens = new SandboxTokens([new Uint8Array(32)]);
  const nudge = async (url: string, id: SandboxId) => nudged.get(url)?.(id);
  const parts = testDomain(parseNodeConfig({ home: new ScratchHome().path }), {
    clock,
    providers: [provider],
    cluster: {
      node,
      store,
      control: store,
      keyring,
      leases,
      nudge,
      states,
      quotas,
      tokens,
      keys: undefined,
    } as unknown as Cluster,
    onDeadline: (id, deadlineMs) => deadlines.set(id, deadlineMs),
    onHandoff: (report) => reports.push(report),
    onError: (error) => errors.push(error),
  });
  nudged.set(node.url, (id) => parts.handoffs?.prefetched(id));
  onTestFinished(async () => {
    leases.dispose();
    await parts.prepared[Symbol.asyncDispose]();
    parts.database[Symbol.dispose]();
  });
  return {
    ...parts,
    leases,
    provider,
    errors,
    reports,
    /** The lease guard's deadline of each sandbox. */
    deadlines,
    /** The ids of all instances, including prepared ones. */
    instances: async () => (await provider.list()).map(({ id }) => id),
  };
}
