import { readFile } from "node:fs/promises";
import { type Provider, Sandbox } from "@sandpiper/core";
import { createProvider } from "@sandpiper/node";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { type Measured, measure, onePerRound } from "../interleave.ts";
import { listProcesses, proportionalMemory } from "../processes.ts";
import { atLeast, atMost, p50Of, resultOf } from "../report.ts";

const NAME = "qemu-clone";
const ON_DEMAND = "sandpiper-qemu, machine started on demand";
const PREPARED = "sandpiper-qemu, prepared machine";
const FIRST = "sandpiper-qemu, the first of its shape";
const MANY = 20;
/** The provider prepares the next machine in this time, outside of the measured turns. */
const REST_MS = 400;
const ROUNDS = 15;
const BOOTS = 3;

export const benchmark: Benchmark = {
  title: "Virtual machines: a copy of a template until it has run a command",
  method: `From the call that creates a sandbox until \`true\` has run in it, of the image that set-up builds, 256 MiB and one processor. A machine on demand starts within that time. A prepared machine is a copy that was started before, has run \`true\` once (so that its code is translated), and is paused. The first of its shape boots a kernel and makes the template. QEMU and the kernel are Debian's packages. Then ${MANY} at once, until the last has answered, and the memory of each (PSS of QEMU). Guests are run as \`sandpiper doctor\` says: with KVM, or translated. Removal does not count; each turn begins after a rest of ${REST_MS} ms.`,
  order: 120,
  timeLimitMs: 240_000,
  setUp: ["qemu", "kernel"],
  async run(context) {
    const home = await context.workspace.makeDir("qemu");
    const onDemand = createProvider("qemu", { home });
    context.progress("making templates");
    const boots: number[] = [];
    for (let boot = 0; boot < BOOTS; boot++) boots.push(await timeFirst(onDemand, 257 + boot));
    const made = await measureTurns(ON_DEMAND, onDemand, context);
    const prepared = await measurePrepared(home, context);
    context.progress(`${MANY} at once`);
    const many = await measureMany(onDemand);
    const results = [
      resultOf(`${NAME}, the first of its shape`, FIRST, boots),
      ...made.results,
      ...prepared.results,
      resultOf(`${NAME}, ${MANY} at once`, ON_DEMAND, [many.tookMs]),
      resultOf(`${NAME}, memory of each of ${MANY}`, ON_DEMAND, many.sizesMb, "MB"),
    ];
    return {
      results,
      problems: [...made.problems, ...prepared.problems],
      targets: [
        atMost("qemu-clone: ms with a prepared machine", p50Of(results, PREPARED, NAME), 60),
        atLeast(`${NAME}, ${MANY} at once: how many answered`, many.sizesMb.length, MANY),
      ],
    };
  },
};

function measureTurns(subject: string, provider: Provider, context: BenchmarkContext): Promise<Measured> {
  const contestants = onePerRound({ [subject]: () => timeFirst(provider) }, REST_MS);
  return measure(contestants, { name: NAME, rounds: ROUNDS, context });
}

/** Runs after the others, because preparing the next machine would disturb them. */
async function measurePrepared(home: string, context: BenchmarkContext): Promise<Measured> {
  const provider = createProvider("qemu", { home, qemu: { prepared: 1 } });
  try {
    return await measureTurns(PREPARED, provider, context);
  } finally {
    await provider[Symbol.asyncDispose]?.();
  }
}

function create(provider: Provider, memoryMib = 256): Promise<Sandbox> {
  return Sandbox.create(provider, { memoryMib, vcpuCount: 1 });
}

async function timeFirst(provider: Provider, memoryMib?: number): Promise<number> {
  const startedAt = performance.now();
  await using sandbox = await create(provider, memoryMib);
  await sandbox.exec(["true"]);
  return performance.now() - startedAt;
}

async function measureMany(provider: Provider): Promise<{ readonly tookMs: number; readonly sizesMb: number[] }> {
  await using stack = new AsyncDisposableStack();
  const startedAt = performance.now();
  const sandboxes = await Promise.all(
    Array.from({ length: MANY }, async () => {
      const sandbox = stack.use(await create(provider));
      await sandbox.exec(["true"]);
      return sandbox;
    }),
  );
  const tookMs = performance.now() - startedAt;
  return { tookMs, sizesMb: await Promise.all(sandboxes.map(({ id }) => memoryMb(id))) };
}

/** QEMU does not name its sandbox, but is in its cgroup. */
async function memoryMb(id: string): Promise<number> {
  const all = await listProcesses();
  const cgroups = await Promise.all(all.map((one) => readFile(`/proc/${one.id}/cgroup`, "utf8").catch(() => "")));
  return await proportionalMemory(all.filter((_, index) => cgroups[index]?.includes(id)));
}
