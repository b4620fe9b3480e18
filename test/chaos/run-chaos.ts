import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, SandboxError } from "@sandpiper/sdk";
import { listLeft } from "../../bench/leftovers.ts";
import { walk } from "../../bench/walk.ts";
import { type ChaosBed, type StoreKind, startChaosBed } from "./chaos-bed.ts";
import { faults } from "./faults.ts";
import { InstanceWatch } from "./instance-watch.ts";
import { Random } from "./random.ts";
import { requests } from "./requests.ts";
import { SandboxWriter } from "./sandbox-writer.ts";

/** The checkpoint policy of each sandbox: every second, after every command, or only on a handoff. */
const POLICIES = [{ everyMs: 1000, keepLast: 3 }, { perCommand: true, keepLast: 2 }, null];
/** Longer than a node waits for a sandbox whose owner has died. */
const PROGRESS_MS = 45_000;
const DESTROY_MS = 45_000;
/** A store's objects of single sandboxes; chunks are shared, and garbage collection removes them later. */
const SANDBOX_PREFIXES = ["locks/", "states/", "checkpoints/", "nodes/"];

export interface ChaosOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly store: StoreKind;
  readonly log: (line: string) => void;
  /** Receives the nodes' logs at the end. */
  readonly logDirectory?: string | undefined;
}

export interface ChaosReport {
  /** Broken promises. */
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** The number of faults, failed requests and failed writes of each kind. */
  readonly happened: Readonly<Record<string, number>>;
}

/** Injects faults into nodes, store and disks, round by round, while clients write. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(options.seed);
  await using bed = await startChaosBed({ store: options.store, random: new Random(options.seed + 1) });
  const run = new ChaosRun(options, bed, random);
  using watch = new InstanceWatch({
    places: bed.nodes.map(({ place }) => place),
    onOverlap: (id, places) => run.violate(`sandbox ${id} runs in ${places.length} places: ${places.join(", ")}`),
  });
  try {
    await run.play();
  } finally {
    run.keepLogs();
  }
  return run.report({ looks: watch.looks, seen: watch.seen });
}

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #bed: ChaosBed;
  readonly #random: Random;
  readonly #clients: readonly Client[];
  readonly #violations: string[] = [];
  readonly #happened = new Map<string, number>();
  readonly #writers: SandboxWriter[] = [];
  readonly #retired: SandboxWriter[] = [];
  /** Every sandbox that existed during the run. */
  readonly #ids = new Set<string>();

  constructor(options: ChaosOptions, bed: ChaosBed, random: Random) {
    this.#options = options;
    this.#bed = bed;
    this.#random = random;
    this.#clients = bed.nodes.map((node) => node.client(bed.apiKey));
  }

  violate(violation: string): void {
    this.#violations.push(violation);
    this.#log(`VIOLATION ${violation}`);
  }

  async play(): Promise<void> {
    for (const policy of POLICIES) await this.#makeSandbox(policy);
    for (let round = 1; round <= this.#options.rounds; round++) {
      await this.#playRound(round);
    }
    await this.#finish();
  }

  keepLogs(): void {
    const { logDirectory } = this.#options;
    if (logDirectory === undefined) return;
    mkdirSync(logDirectory, { recursive: true });
    for (const { name, log } of this.#bed.nodes) writeFileSync(join(logDirectory, `${name}.log`), log.join("\n"));
  }

  report(watched: { readonly looks: number; readonly seen: number }): ChaosReport {
    const writers = [...this.#writers, ...this.#retired];
    const sum = (of: (writer: SandboxWriter) => number) => writers.reduce((total, writer) => total + of(writer), 0);
    for (const { failures } of writers) {
      for (const [what, times] of failures) this.#count(`write failed: ${what}`, times);
    }
    return {
      violations: this.#violations,
      counts: {
        rounds: this.#options.rounds,
        sandboxes: this.#ids.size,
        acknowledged: sum(({ ledger }) => ledger.acknowledged),
        rollbacks: sum(({ ledger }) => ledger.rollbacks),
        setBack: sum(({ ledger }) => ledger.setBack),
        ...watched,
      },
      happened: Object.fromEntries([...this.#happened].sort()),
    };
  }

  async #playRound(round: number): Promise<void> {
    const context = { bed: this.#bed, random: this.#random, log: (line: string) => this.#log(`${round} ${line}`) };
    const [name, fault] = this.#random.pick(faults);
    this.#count(`fault: ${name}`);
    const broken = fault(context).catch((thrown) => this.violate(`after ${name}: ${thrown}`));
    await sleep(this.#random.between(0, 1500));
    const asked = this.#ask(round);
    await Promise.all([broken, asked]);
    // Some rounds begin before the cluster has recovered from the previous one.
    if (this.#random.next() < 0.3) return;
    await this.#settle(round);
  }

  async #ask(round: number): Promise<void> {
    const [name, request] = this.#random.pick(requests);
    const { id } = this.#random.pick(this.#writers);
    const { nodes, apiKey } = this.#bed;
    const onMade = (made: string) => void this.#ids.add(made);
    this.#log(`${round} ${name} of ${id}`);
    try {
      await request({ id, nodes, apiKey, clients: this.#clients, random: this.#random, onMade });
      this.#count(`${name}: done`);
    } catch (thrown) {
      const { code, reason } = SandboxError.from(thrown);
      this.#count(`${name}: ${code}/${reason}`);
    }
  }

  /** After the repair every writer must succeed again or get a permanent error. */
  async #settle(round: number): Promise<void> {
    for (const node of this.#bed.nodes) {
      if (node.isRunning) continue;
      this.violate(`round ${round}: node ${node.name} exited unexpectedly: ${node.log.slice(-8).join("\n")}`);
      await node.revive();
    }
    await Promise.all(
      this.#writers.map(async (writer) => {
        const isFine = await writer.progress(PROGRESS_MS);
        if (!isFine) {
          const last = [...writer.failures].map(([what, times]) => `${what} ${times}×`).join(", ");
          this.violate(`round ${round}: sandbox ${writer.id} neither works nor fails permanently (${last})`);
        }
        if (!isFine || writer.over !== undefined) await this.#replace(writer);
      }),
    );
  }

  async #replace(writer: SandboxWriter): Promise<void> {
    await writer.stop();
    const at = this.#writers.indexOf(writer);
    const policy = POLICIES[at] ?? null;
    this.#count(`over: ${writer.over ?? "stuck"}${policy === null ? "" : ", with automatic checkpoints"}`);
    this.#log(`over ${writer.id}: ${writer.over}`);
    if (writer.over?.startsWith("not_found")) this.violate(`sandbox ${writer.id} has disappeared`);
    this.#retired.push(writer);
    await this.#makeSandbox(policy, at);
  }

  async #makeSandbox(policy: (typeof POLICIES)[number], at = this.#writers.length): Promise<void> {
    const client = this.#random.pick(this.#clients);
    const sandbox = await client.sandboxes.create({ memoryMib: 128, checkpointPolicy: policy ?? undefined });
    this.#ids.add(sandbox.id);
    const writer = new SandboxWriter({
      id: sandbox.id,
      clients: this.#clients,
      random: new Random(this.#random.between(0, 2 ** 31)),
      onFault: (fault) => this.violate(fault),
    });
    this.#writers[at] = writer;
    writer.start();
  }

  /** Destroys all sandboxes, stops the nodes and looks for leftovers. */
  async #finish(): Promise<void> {
    await this.#settle(this.#options.rounds);
    for (const writer of this.#writers) {
      await writer.stop();
      await writer.verify().catch((thrown) => this.violate(`sandbox ${writer.id} cannot be read: ${thrown}`));
    }
    for (const id of this.#ids) await this.#destroy(id);
    for (const node of this.#bed.nodes) await node.terminate();
    for (const left of await findLeaks(this.#bed, [...this.#ids])) this.violate(`left: ${left}`);
  }

  async #destroy(id: string): Promise<void> {
    const endAt = performance.now() + DESTROY_MS;
    for (;;) {
      try {
        const [node] = this.#bed.nodes;
        const response = await fetch(`${node?.url}/v1/sandboxes/${id}`, {
          method: "DELETE",
          headers: { authorization: `Bearer ${this.#bed.apiKey}` },
        });
        if (response.ok || response.status === 404) return;
        throw new Error(await response.text());
      } catch (thrown) {
        if (performance.now() > endAt) return this.violate(`sandbox ${id} cannot be destroyed: ${thrown}`);
        await sleep(500);
      }
    }
  }

  #count(what: string, times = 1): void {
    this.#happened.set(what, (this.#happened.get(what) ?? 0) + times);
  }

  #log(line: string): void {
    this.#options.log(`${new Date().toISOString()} ${line}`);
  }
}

/** Leftovers of destroyed sandboxes on stopped nodes and in the store. */
async function findLeaks({ nodes, shared }: ChaosBed, ids: readonly string[]): Promise<string[]> {
  const left: string[] = [];
  for (const { homeDir, name } of nodes) {
    left.push(...(await listLeft(join(homeDir, "node"), ids)));
    const scratch = await walk(join(homeDir, "checkpoints"));
    left.push(...scratch.map((entry) => `scratch of ${name}: ${entry.name}`));
  }
  for (const prefix of SANDBOX_PREFIXES) {
    for await (const { key } of shared.store.list(prefix)) left.push(`object ${key}`);
  }
  return [...new Set(left)];
}
