import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type CreateSandboxBody, SandboxError } from "@sandpiper/sdk";
import { MACHINE } from "../node/qemu-home.ts";
import { type ChaosBed, type StoreKind, startChaosBed } from "./chaos-bed.ts";
import type { ChaosReport } from "./chaos-report.ts";
import type { ChaosSandbox, ProviderName } from "./chaos-sandbox.ts";
import { Deadlines } from "./deadlines.ts";
import { type PlannedFault, type PlannedRound, planFaults } from "./faults/fault-plan.ts";
import { findLeaks } from "./find-leaks.ts";
import { InstanceWatch } from "./instance-watch.ts";
import { Random } from "./random.ts";
import { requests } from "./requests.ts";
import { SandboxWriter } from "./sandbox-writer.ts";
import { SchedulerLag } from "./scheduler-lag.ts";

/** The sandboxes in use, with the policy of their checkpoints; without one, the default of a cluster. */
const SLOTS = [
  { provider: "gvisor", policy: { everyMs: 1000, keepLast: 3 } },
  { provider: "gvisor", policy: { perCommand: true, keepLast: 2 } },
  { provider: "gvisor", policy: undefined },
  { provider: "docker", policy: { everyMs: 3000, keepLast: 3 } },
  { provider: "qemu", policy: { everyMs: 5000, keepLast: 2 } },
] as const satisfies { provider: ProviderName; policy: object | undefined }[];
/** Longer than a node waits for a sandbox whose owner has died. */
const PROGRESS_MS = 45_000;
const REQUEST_MS = 60_000;
/** The first machine of a node boots. */
const CREATE_MS = { gvisor: 60_000, docker: 60_000, qemu: 240_000 };
const CREATE_TRIES = 30;
const CREATE_PAUSE_MS = 500;
const FINISH_MS = 60_000;
/** What a store with damaged objects answers; not after their repair. */
const DAMAGED = /checkpoint_damaged|object_damaged|object_forged|object_replayed/;

export interface ChaosOptions {
  readonly faults: number;
  readonly seed: number;
  readonly store: StoreKind;
  readonly providers: readonly ProviderName[];
  readonly log: (line: string) => void;
  /** Receives the nodes' logs at the end. */
  readonly logDirectory?: string | undefined;
  /** Ends the run after its current round, and stops everything that it started. */
  readonly signal?: AbortSignal | undefined;
}

/** Injects faults into nodes, instances, store, disks, networks, objects and clocks, round by round, while clients write. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  await using lag = new SchedulerLag();
  const random = new Random(options.seed + 1);
  await using bed = await startChaosBed({ store: options.store, providers: options.providers, random });
  const run = new ChaosRun(options, bed, lag);
  using watch = new InstanceWatch({
    places: bed.nodes.map(({ place }) => place),
    engines: bed.engines,
    onOverlap: (id, places) => run.violate("ownedTwice", `sandbox ${id} runs in: ${places.join(", ")}`),
  });
  try {
    await run.play();
  } finally {
    await run.stop();
    run.keepLogs();
  }
  return run.report({ looks: watch.looks, seen: watch.seen });
}

/** The rules of docs/chaos.md. */
type Rule = "lost" | "repeated" | "ownedTwice" | "leaks" | "unanswered" | "stuck";

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #bed: ChaosBed;
  readonly #lag: SchedulerLag;
  readonly #deadlines: Deadlines;
  /** For choices that change nothing in the plan of faults. */
  readonly #random: Random;
  readonly #clients: readonly Client[];
  readonly #violations: string[] = [];
  readonly #broken: Record<Rule, number> = { lost: 0, repeated: 0, ownedTwice: 0, leaks: 0, unanswered: 0, stuck: 0 };
  readonly #happened = new Map<string, number>();
  readonly #slots: readonly (typeof SLOTS)[number][];
  readonly #writers: SandboxWriter[] = [];
  /** New sandboxes in place of ended ones, by their index; rounds that do not need them continue meanwhile. */
  readonly #replacements = new Map<number, Promise<void>>();
  readonly #retired: SandboxWriter[] = [];
  /** Every sandbox that existed during the run. */
  readonly #ids = new Set<string>();

  constructor(options: ChaosOptions, bed: ChaosBed, lag: SchedulerLag) {
    this.#options = options;
    this.#bed = bed;
    this.#lag = lag;
    this.#random = new Random(options.seed + 2);
    this.#clients = bed.nodes.map((node) => node.client(bed.apiKey));
    this.#slots = SLOTS.filter(({ provider }) => options.providers.includes(provider));
    this.#deadlines = new Deadlines({ lag, onMissed: (missed) => this.violate("unanswered", missed) });
  }

  violate(rule: Rule, violation: string): void {
    this.#broken[rule]++;
    this.#violations.push(`${rule}: ${violation}`);
    this.#log(`VIOLATION ${rule}: ${violation}`);
  }

  async play(): Promise<void> {
    const { faults, seed, store } = this.#options;
    const plan = planFaults({ faults, store, sandboxes: this.#slots.length, random: new Random(seed) });
    await Promise.all(this.#slots.map((_, at) => this.#makeSandbox(at)));
    await this.#settle(0);
    for (const [index, round] of plan.entries()) {
      this.#options.signal?.throwIfAborted();
      await this.#playRound(index + 1, round);
    }
    await this.#finish(plan.length);
  }

  /** Ends what a run that was given up leaves. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#replacements.values());
    await Promise.all(this.#writers.map((writer) => writer?.stop()));
    for (const client of this.#clients) client.close();
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
      broken: this.#broken,
      counts: {
        faults: this.#options.faults,
        sandboxes: this.#ids.size,
        acknowledged: sum(({ ledger }) => ledger.acknowledged),
        rollbacks: sum(({ ledger }) => ledger.rollbacks),
        setBack: sum(({ ledger }) => ledger.setBack),
        ...this.#deadlines.counts,
        waitedForProcessorMs: this.#lag.totalMs,
        longestSchedulerLagMs: this.#lag.longestMs,
        ...watched,
      },
      happened: Object.fromEntries([...this.#happened].sort()),
    };
  }

  async #playRound(number: number, { faults, request, settles }: PlannedRound): Promise<void> {
    const injected = faults.map((planned) => this.#inject(number, planned));
    await Promise.all([...injected, this.#ask(number, request)]);
    // Some rounds begin before the cluster has recovered from the previous one.
    if (settles) await this.#settle(number);
  }

  async #inject(round: number, { fault, sandbox, afterMs, seed }: PlannedFault): Promise<void> {
    await sleep(afterMs);
    this.#count(`fault: ${fault.kind}`);
    const isOfSandbox = fault.area === "instance" || fault.area === "object";
    if (isOfSandbox) await this.#replacements.get(sandbox);
    const target = this.#target(sandbox);
    if (isOfSandbox) this.#count(`fault on ${target.provider}`);
    const log = (line: string) => this.#log(`${round} ${line}`);
    try {
      await fault.inject({ bed: this.#bed, random: new Random(seed), sandbox: target, log });
    } catch (thrown) {
      this.violate("stuck", `after ${fault.kind}: ${thrown}`);
    }
  }

  async #ask(round: number, { name, sandbox, afterMs, seed }: PlannedRound["request"]): Promise<void> {
    await sleep(afterMs);
    const [, request] = requests.find(([each]) => each === name) ?? [];
    await this.#replacements.get(sandbox);
    const { id, provider } = this.#target(sandbox);
    const { nodes, apiKey } = this.#bed;
    const context = { id, nodes, apiKey, clients: this.#clients, random: new Random(seed) };
    const onMade = (made: string) => void this.#ids.add(made);
    this.#log(`${round} ${name} of ${provider} ${id}`);
    try {
      await this.#deadlines.run(`${name} of ${provider} ${id}`, REQUEST_MS, async (signal) =>
        request?.({ ...context, signal, onMade }),
      );
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
      this.violate("stuck", `round ${round}: node ${node.name} exited by itself: ${node.log.slice(-8).join("\n")}`);
      await node.revive();
    }
    await Promise.all(
      this.#writers.map(async (writer, at) => {
        if (this.#replacements.has(at)) return;
        const isFine = await writer.progress(PROGRESS_MS);
        if (!isFine) {
          const last = [...writer.failures].map(([what, times]) => `${what} ${times}×`).join(", ");
          this.violate("stuck", `round ${round}: sandbox ${writer.id} neither works nor fails permanently (${last})`);
        }
        if (isFine && writer.over === undefined) return;
        const replacing = this.#replace(writer, at).finally(() => this.#replacements.delete(at));
        // Whoever needs the sandbox learns of a failure.
        replacing.catch(() => {});
        this.#replacements.set(at, replacing);
      }),
    );
  }

  #target(at: number): ChaosSandbox {
    return (this.#writers[at] as SandboxWriter).sandbox;
  }

  async #replace(writer: SandboxWriter, at: number): Promise<void> {
    const over = writer.over ?? "stuck";
    await writer.stop();
    const { provider, policy } = this.#slots[at] as (typeof SLOTS)[number];
    this.#count(`over: ${provider} ${over}${policy === undefined ? "" : ", with automatic checkpoints"}`);
    this.#log(`over ${provider} ${writer.id}: ${over}`);
    if (over.startsWith("not_found")) this.violate("lost", `sandbox ${writer.id} has disappeared`);
    if (DAMAGED.test(over)) this.violate("lost", `sandbox ${writer.id} is ${over} although the store is repaired`);
    this.#retired.push(writer);
    await this.#makeSandbox(at);
  }

  async #makeSandbox(at: number): Promise<void> {
    const { provider, policy } = this.#slots[at] as (typeof SLOTS)[number];
    const size = provider === "qemu" ? MACHINE : { memoryMib: 128 };
    const { id } = await this.#create({ provider, ...size, checkpointPolicy: policy, onFailure: "restore" });
    const writer = new SandboxWriter({
      sandbox: { id, provider },
      clients: this.#clients,
      random: new Random(this.#random.between(0, 2 ** 31)),
      deadlines: this.#deadlines,
      lag: this.#lag,
      onFault: (rule, fault) => this.violate(rule, fault),
    });
    this.#writers[at] = writer;
    writer.start();
  }

  /** May fail: faults happen meanwhile, and on a busy machine a node can lose a lease while it creates the sandbox. */
  async #create(options: CreateSandboxBody & { readonly provider: ProviderName }): Promise<{ readonly id: string }> {
    for (let tries = 1; ; tries++) {
      const client = this.#random.pick(this.#clients);
      try {
        const { provider } = options;
        const created = await this.#deadlines.run(`create ${provider}`, CREATE_MS[provider], (signal) =>
          client.sandboxes.create({ ...options, signal }),
        );
        this.#ids.add(created.id);
        return created;
      } catch (thrown) {
        const { code, reason } = SandboxError.from(thrown);
        this.#count(`create: ${code}/${reason}`);
        if (tries === CREATE_TRIES) throw thrown;
        await sleep(CREATE_PAUSE_MS);
      }
    }
  }

  /** Destroys all sandboxes, stops the nodes and looks for leftovers. */
  async #finish(round: number): Promise<void> {
    await this.#settle(round);
    await Promise.all(this.#replacements.values());
    for (const writer of this.#writers) {
      await writer.stop();
      await writer.verify().catch((thrown) => this.violate("lost", `sandbox ${writer.id} cannot be read: ${thrown}`));
    }
    // Including sandboxes whose creation a client does not know of, because it lost the answer.
    const [client] = this.#clients as [Client];
    for await (const { id } of client.sandboxes.list()) this.#ids.add(id);
    for (const id of this.#ids) await this.#destroy(id);
    for (const client of this.#clients) client.close();
    for (const node of this.#bed.nodes) await node.terminate();
    for (const left of await findLeaks(this.#bed, [...this.#ids])) this.violate("leaks", left);
  }

  async #destroy(id: string): Promise<void> {
    const [client] = this.#clients as [Client];
    const endAt = performance.now() + FINISH_MS;
    for (;;) {
      try {
        return await this.#deadlines.run(`destroy ${id}`, REQUEST_MS, async (signal) => {
          await (await client.sandboxes.connect(id, { signal })).destroy({ signal });
        });
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (error.code === "not_found" || error.reason === "sandbox_destroyed") return;
        if (performance.now() > endAt) return this.violate("leaks", `sandbox ${id} cannot be destroyed: ${thrown}`);
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
