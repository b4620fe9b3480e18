import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { MemoryStore } from "../testing/memory-store.ts";
import type { Lease } from "./lease.ts";
import { Audit } from "./testing/audit.ts";
import { DURATION_MS } from "./testing/cluster.ts";
import type { StoreCall } from "./testing/node-store.ts";
import { SimulatedProcess } from "./testing/simulated-process.ts";
import { World } from "./testing/world.ts";

const RUNS = 1_000;
const STORM_MS = 60_000;
/** Enough for a suspended node that waits behind two others, the first of which is dead. */
const CALM_MS = 150_000;

/** Three nodes that compete for one sandbox. */
class Simulation {
  readonly #id = createSandboxId();
  readonly #world: World;
  readonly #store = new MemoryStore();
  readonly #storeFaults;
  readonly #audit = new Audit();
  readonly #processes = new Map<string, SimulatedProcess>();
  /** Whether the instance of a killed node still runs; it ends at the last deadline of its lease. */
  readonly #leftRunning = new Map<string, () => boolean>();
  /** The epoch that each node has on its disk. */
  readonly #epochs = new Map<string, number>();
  #isStorm = true;
  #commits = 0;
  #wants: string | undefined;
  #winner: string | undefined;
  #fault: unknown;

  constructor(seed: number) {
    this.#world = new World(seed);
    const { chance, between } = this.#world;
    this.#storeFaults = {
      failures: chance(0.3) ? 0 : between(0, 0.3),
      slowness: chance(0.3) ? 0 : between(0, 0.2),
    };
  }

  async play(): Promise<{ acquisitions: number; commits: number }> {
    const world = this.#world;
    for (const node of ["a", "b", "c"]) {
      this.#start(node);
      this.#disturb(node, world.between(2_000, 60_000));
    }
    await this.#run(STORM_MS);
    this.#isStorm = false;
    Object.assign(this.#storeFaults, { failures: 0, slowness: 0 });
    this.#wants = ["a", "b", "c"][Math.floor(world.between(0, 3))];
    while (this.#winner === undefined && world.nowMs < STORM_MS + CALM_MS) await this.#run(world.nowMs + 1_000);
    if (this.#winner === undefined)
      throw new Error(`${this.#wants} did not get the sandbox although no fault was left`);
    return this.#audit;
  }

  #run(untilMs: number): Promise<void> {
    return this.#world.run(untilMs, () => {
      if (this.#fault !== undefined) throw this.#fault;
      this.#checkHolders();
    });
  }

  #checkHolders(): void {
    const holders = new Set<string>();
    for (const [node, isRunning] of this.#leftRunning) if (isRunning()) holders.add(node);
    for (const { node, isDead, leases } of this.#processes.values()) {
      if (!isDead && leases.held(this.#id)?.isHeld) holders.add(node);
    }
    if (holders.size > 1) throw new Error(`${[...holders].join(" and ")} hold it at ${this.#world.nowMs} ms`);
  }

  #start(node: string): void {
    const process = new SimulatedProcess({
      world: this.#world,
      node,
      store: this.#store,
      storeFaults: this.#storeFaults,
      nudge: (url) => this.#nudge(url),
      onWritten: (writer, call) => void this.#audited(writer, call),
    });
    this.#processes.set(node, process);
    this.#live(process).catch((thrown) => {
      this.#fault ??= thrown;
    });
  }

  #nudge(url: string): void {
    const world = this.#world;
    if (world.chance(0.3)) return;
    world.after(world.between(1, 100), () => this.#processes.get(url)?.poke(this.#id));
  }

  async #audited(writer: string, { key }: StoreCall): Promise<void> {
    const stored = await this.#store.get(key);
    const value = JSON.parse(new TextDecoder().decode(stored?.bytes));
    try {
      if (key.startsWith("locks/")) this.#audit.onLock(writer, value);
      else this.#audit.onState(writer, value);
    } catch (thrown) {
      this.#fault ??= thrown;
    }
  }

  /** Repeatedly suspends, kills and restarts a node, and sets its clock. */
  #disturb(node: string, everyMs: number): void {
    const world = this.#world;
    const { chance, between } = world;
    world.after(between(0, 2 * everyMs), () => {
      const process = this.#processes.get(node);
      if (!this.#isStorm || process === undefined) return;
      this.#disturb(node, everyMs);
      if (process.isDead) return;
      if (chance(0.3)) process.setClock();
      if (chance(0.4)) process.stop(chance(0.5) ? between(10, 5_000) : between(5_000, 2 * DURATION_MS));
      else if (chance(0.5)) this.#kill(process, chance(0.5) ? between(0, 2_000) : between(0, 3 * DURATION_MS));
    });
  }

  #kill(process: SimulatedProcess, restartInMs: number): void {
    const lease = process.leases.held(this.#id);
    if (lease?.isHeld) this.#leftRunning.set(process.node, () => process.clock.monotonicMs() < lease.deadlineMs);
    process.kill();
    this.#world.after(restartInMs, () => this.#start(process.node));
  }

  async #live(process: SimulatedProcess): Promise<never> {
    const { chance, between } = this.#world;
    const epoch = this.#epochs.get(process.node);
    if (epoch !== undefined && chance(0.7)) await this.#resume(process, epoch);
    for (;;) {
      await process.sleep(between(0, 3_000));
      const isWanting = this.#isWanting(process);
      if (!isWanting && !this.#isStorm) continue;
      const result = await this.#ask(process, isWanting).catch(() => undefined);
      if (result !== undefined && "lease" in result) {
        if (isWanting) this.#winner = process.node;
        this.#leftRunning.delete(process.node);
        await this.#hold(process, result.lease);
      }
    }
  }

  /** Without faults, a node that already holds the lease releases it first, and acquires it again. */
  #isWanting({ node }: SimulatedProcess): boolean {
    return this.#wants === node && this.#winner === undefined;
  }

  #ask({ leases }: SimulatedProcess, isWanting: boolean) {
    const { chance, between } = this.#world;
    if (isWanting) return leases.wait(this.#id, { takeover: true });
    if (chance(0.4)) return leases.acquire(this.#id);
    const caller = new AbortController();
    if (chance(0.2)) this.#world.after(between(0, 10_000), () => caller.abort());
    return leases.wait(this.#id, { takeover: chance(0.5), signal: caller.signal });
  }

  async #resume(process: SimulatedProcess, epoch: number): Promise<void> {
    const lease = await process.leases.resume(this.#id, epoch).catch(() => undefined);
    if (lease === undefined) return;
    this.#leftRunning.delete(process.node);
    await this.#hold(process, lease);
  }

  /** Runs the sandbox until another node waits for it, the holder is done with it, or its lease is lost. */
  async #hold(process: SimulatedProcess, lease: Lease): Promise<void> {
    const { chance, between } = this.#world;
    this.#epochs.set(process.node, lease.epoch);
    let hasWaiter = false;
    lease.onWaiter(() => {
      hasWaiter = true;
    });
    const state = await process.states.claim(this.#id, lease.epoch).catch(() => undefined);
    const isDone = () => hasWaiter || this.#isWanting(process) || (this.#isStorm && chance(0.1));
    while (state !== undefined && lease.isHeld && !isDone()) {
      if (chance(0.5)) await this.#commit(state);
      else if (chance(0.2)) await lease.setAttached(chance(0.5)).catch(() => undefined);
      await process.sleep(between(0, 2_000));
    }
    if (state !== undefined && chance(0.5)) await this.#commit(state);
    if (lease.isHeld) await lease.release().catch(() => undefined);
    else if (chance(0.5)) await this.#resume(process, lease.epoch);
  }

  async #commit(state: { commit(content: unknown): Promise<void> }): Promise<void> {
    const content = ++this.#commits;
    await state.commit(content).then(
      () => this.#audit.onAcknowledged(content),
      () => undefined,
    );
  }
}

it("three nodes never hold the same sandbox, and no stale commit is accepted, in any order of events", {
  timeout: 120_000,
}, async () => {
  let [acquisitions, commits] = [0, 0];
  for (let seed = 1; seed <= RUNS; seed++) {
    const audit = await new Simulation(seed).play().catch((cause) => {
      throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    });
    acquisitions += audit.acquisitions;
    commits += audit.commits;
  }
  expect(acquisitions).toBeGreaterThan(5 * RUNS);
  expect(commits).toBeGreaterThan(5 * RUNS);
});
