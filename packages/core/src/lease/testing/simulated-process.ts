import type { Clock, SandboxId } from "@sandpiper/protocol";
import type { ObjectStore } from "../../store/object-store.ts";
import { FencedStates } from "../fenced-states.ts";
import { Leases } from "../leases.ts";
import { CHECKPOINT_BUDGET_MS, DURATION_MS, MAX_SKEW_MS } from "./cluster.ts";
import { NodeStore, type StoreCall } from "./node-store.ts";
import type { World } from "./world.ts";

/** Probabilities for each call to the store. */
interface StoreFaults {
  failures: number;
  slowness: number;
}

export interface SimulatedProcessOptions {
  readonly world: World;
  readonly node: string;
  readonly store: ObjectStore;
  readonly storeFaults: StoreFaults;
  readonly nudge: (url: string, sandbox: SandboxId) => void;
  /** Called for each write that the store has accepted. */
  readonly onWritten: (node: string, call: StoreCall) => void;
}

/** One process of one node. It can be suspended, as by SIGSTOP, or end at any moment, as by kill -9. */
export class SimulatedProcess {
  readonly node: string;
  readonly clock: Clock;
  readonly leases: Leases;
  readonly states: FencedStates;
  readonly #options: SimulatedProcessOptions;
  readonly #delayed: (() => void)[] = [];
  isDead = false;
  #isStopped = false;
  #offsetMs = 0;

  constructor(options: SimulatedProcessOptions) {
    const { world, node } = options;
    this.node = node;
    this.#options = options;
    this.setClock();
    const rate = world.between(0.99, 1.01);
    const zeroMs = world.between(0, 1e6);
    const clock: Clock = {
      monotonicMs: () => zeroMs + world.nowMs * rate,
      now: () => new Date(1_700_000_000_000 + world.nowMs + this.#offsetMs),
      schedule: (delayMs, callback) => {
        let isCanceled = false;
        world.after(delayMs / rate, () => this.#deliver(() => isCanceled || callback()));
        return () => {
          isCanceled = true;
        };
      },
    };
    this.clock = clock;
    const store = new NodeStore(options.store, (call, effect) => this.#call(call, effect));
    const onError = () => undefined;
    this.leases = new Leases({
      store,
      node: { id: node, url: node },
      clock,
      durationMs: DURATION_MS,
      maxSkewMs: MAX_SKEW_MS,
      checkpointBudgetMs: CHECKPOINT_BUDGET_MS,
      nudge: async (url, sandbox) => options.nudge(url, sandbox),
      onError,
    });
    this.states = new FencedStates({ store, clock, leases: this.leases, onError });
  }

  /** Sets the wall clock within the allowed skew, mostly to the limits. */
  setClock(): void {
    const { world } = this.#options;
    const side = world.between(-1, 1);
    this.#offsetMs = (MAX_SKEW_MS / 2) * (world.chance(0.7) ? Math.sign(side) : side);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.clock.schedule(delayMs, resolve));
  }

  poke(sandbox: SandboxId): void {
    this.#deliver(() => this.leases.poke(sandbox));
  }

  stop(forMs: number): void {
    this.#isStopped = true;
    this.#options.world.after(forMs, () => {
      this.#isStopped = false;
      for (const open of this.#delayed.splice(0)) this.#deliver(open);
    });
  }

  kill(): void {
    this.isDead = true;
  }

  /** A dead process receives nothing; a suspended one receives it later. */
  #deliver(open: () => void): void {
    if (this.isDead) return;
    if (this.#isStopped) this.#delayed.push(open);
    else open();
  }

  /** A call that was sent takes effect even if its sender has died. */
  #call<T>(call: StoreCall, effect: () => Promise<T>): Promise<T> {
    const { world, storeFaults, onWritten } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fails = world.chance(storeFaults.failures);
    const isLostOnTheWay = fails && world.chance(0.5);
    const fail = () => reject(new Error("the store failed"));
    world.after(this.#latencyMs(), () => {
      if (isLostOnTheWay) {
        this.#deliver(fail);
        return;
      }
      void effect().then((result) => {
        if (call.operation === "put" && result !== undefined) onWritten(this.node, call);
        world.after(this.#latencyMs(), () => this.#deliver(() => (fails ? fail() : resolve(result))));
      });
    });
    return promise;
  }

  #latencyMs(): number {
    const { world, storeFaults } = this.#options;
    if (!world.chance(storeFaults.slowness)) return world.between(1, 30);
    return world.chance(0.7) ? world.between(30, 5_000) : world.between(5_000, 2.5 * DURATION_MS);
  }
}
