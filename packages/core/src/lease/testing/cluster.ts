import { type Clock, createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { FakeClock } from "@sandpiper/protocol/testing";
import { MemoryStore } from "../../testing/memory-store.ts";
import { FencedStates } from "../fenced-states.ts";
import { type Acquisition, Leases } from "../leases.ts";
import type { LockView } from "../lock.ts";
import { type Network, NodeStore } from "./node-store.ts";

export const DURATION_MS = 15_000;
export const MAX_SKEW_MS = 2_000;
export const CHECKPOINT_BUDGET_MS = 10_000;

export interface ClusterNode {
  readonly leases: Leases;
  readonly states: FencedStates;
  /** A test replaces it to lose calls and answers. */
  network: Network;
}

/** Nodes on one store, with clocks that tests move, and with nudges that arrive unless a test loses them. */
export class Cluster {
  readonly clock = new FakeClock();
  readonly store = new MemoryStore({ clock: this.clock });
  readonly id: SandboxId = createSandboxId();
  readonly errors: unknown[] = [];
  readonly nudges: string[] = [];
  losesNudges = false;
  readonly #reachable = new Map<string, Leases>();

  /** Starts a node; an earlier node of the same name is no longer reached. */
  start(name: string, clock: Clock = this.clock): ClusterNode {
    const url = `http://${name}`;
    const store = new NodeStore(this.store, (call, effect) => node.network(call, effect));
    const onError = (error: unknown) => this.errors.push(error);
    const leases = new Leases({
      store,
      node: { id: name, url },
      clock,
      durationMs: DURATION_MS,
      maxSkewMs: MAX_SKEW_MS,
      checkpointBudgetMs: CHECKPOINT_BUDGET_MS,
      nudge: async (to, sandbox) => {
        this.nudges.push(`${name} → ${to}`);
        if (!this.losesNudges) this.#reachable.get(to)?.poke(sandbox);
      },
      onError,
    });
    this.#reachable.set(url, leases);
    const states = new FencedStates({ store, clock, leases, onError });
    const node: ClusterNode = { leases, states, network: (_, effect) => effect() };
    return node;
  }

  /** The sandbox's lock as it is in the store. */
  async lock() {
    const stored = await this.store.get(`locks/${this.id}.lock`);
    return stored && JSON.parse(new TextDecoder().decode(stored.bytes));
  }
}

/** Three nodes, of which `a` holds the lease of the sandbox. */
export async function heldByA() {
  const cluster = new Cluster();
  const [a, b, c] = [cluster.start("a"), cluster.start("b"), cluster.start("c")];
  const { lease } = acquired(await a.leases.acquire(cluster.id));
  return { cluster, id: cluster.id, a, b, c, lease };
}

/** The node cannot reach the store. */
export const away: Network = async () => {
  throw new Error("the store is away");
};

/** Writes take effect, but their answers are lost. */
export const losesAnswersToWrites: Network = async ({ operation }, effect) => {
  const result = await effect();
  if (operation === "get") return result;
  throw new Error("the answer was lost");
};

/** The result of an acquire that must have succeeded. */
export function acquired(result: Acquisition | LockView): Acquisition {
  if (!("lease" in result)) throw new Error(`${result.owner} has it`);
  return result;
}

/** A clock that is ahead of another by a fixed time. */
export function skewed(clock: Clock, byMs: number): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    now: () => new Date(clock.now().getTime() + byMs),
    schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
  };
}
