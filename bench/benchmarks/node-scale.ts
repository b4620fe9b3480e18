import { readFile } from "node:fs/promises";
import type { Client, Sandbox } from "@sandpiper/sdk";
import { concurrently } from "../../packages/cli/src/transfer/concurrently.ts";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { guestPrograms } from "../guest-programs.ts";
import { listLeft } from "../leftovers.ts";
import { atMost, type Result, resultOf } from "../report.ts";
import { percentile } from "../statistics.ts";
import { nextInTurn } from "../subject.ts";
import { timeTrue } from "../timed-run.ts";

const SUBJECT = "sandpiper-node";
const TRUE_PATH = "/tmp/true";
const SIZES = [10, 100, 1000];
/** Concurrent boots; more would only compete for few cores. */
const CONCURRENT = 4;
const EXECS = 300;
const LISTS = 20;

export const benchmark: Benchmark = {
  title: "A node with 1,000 idle sandboxes: exec, list, and a restart after kill -9",
  method: `A node in a separate process. At each size, ${EXECS} sequential execs of a static \`true\` through the SDK, spread over all sandboxes, each after one uncounted exec; then ${LISTS} lists of all sandboxes over HTTP. At the largest size the node is killed with -9 and restarted; the time runs from its start until it has adopted the instances and listens.`,
  order: 100,
  timeLimitMs: 1_200_000,
  async run(context) {
    const home = await context.workspace.makeDir("node-scale");
    const config = { home, port: 0, logLevel: "warn", maxSandboxes: 0, poolMaxBoots: CONCURRENT } as const;
    const program = await readFile((await guestPrograms(context.workspace)).true);
    const first = context.workspace.own(await NodeProcess.start(config));
    const sandboxes: Sandbox[] = [];
    const results: Result[] = [];
    const result = (name: string, samples: readonly number[]) => resultOf(name, SUBJECT, samples);
    const perItemMs = new Map<number, number>();
    for (const size of SIZES) {
      context.progress(`booting up to ${size}`);
      await grow(first.client, sandboxes, { size, program, signal: context.signal });
      context.progress(`exec with ${size}`);
      const samples = await execs(sandboxes, context);
      results.push(result(`node-scale exec, ${size} idle`, samples));
      results.push({ ...result(`node-scale exec p99, ${size} idle`, [percentile(samples, 99)]), n: samples.length });
      const lists = await timeLists(first.client, size);
      perItemMs.set(size, percentile(lists, 50) / size);
      results.push(result(`node-scale list, ${size} sandboxes`, lists));
    }
    context.progress("kill -9 and restart");
    await first.kill();
    const second = context.workspace.own(await NodeProcess.start(config));
    const lost = sandboxes.length - second.started.adopted.length;
    results.push(result(`node-scale start, adopting ${sandboxes.length}`, [second.started.startMs]));
    context.progress("destroying them");
    const ids = sandboxes.map(({ id }) => id);
    await concurrently(16, ids, async (id) => (await second.client.sandboxes.connect(id)).destroy());
    await second.stop();
    const left = await listLeft(home, ids);
    return {
      results,
      problems: left.slice(0, 10).map((one) => `node-scale, left after destroying them: ${one}`),
      targets: [
        atMost(
          "node-scale: list of 1000, per item, times as long as a list of 10",
          (perItemMs.get(1000) ?? 0) / (perItemMs.get(10) ?? 1),
          2,
        ),
        atMost("node-scale: sandboxes of 1000 lost by kill -9 and a restart", lost, 0),
        atMost("node-scale: seconds until a restart has adopted 1000", second.started.startMs / 1000, 10),
        atMost("node-scale: leftovers after destroying them", left.length, 0),
      ],
    };
  },
};

async function grow(
  client: Client,
  sandboxes: Sandbox[],
  { size, program, signal }: { readonly size: number; readonly program: Uint8Array; readonly signal: AbortSignal },
): Promise<void> {
  await concurrently(CONCURRENT, Array(size - sandboxes.length), async () => {
    signal.throwIfAborted();
    const sandbox = await client.sandboxes.create();
    await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
    sandboxes.push(sandbox);
  });
}

async function execs(sandboxes: readonly Sandbox[], { signal }: BenchmarkContext): Promise<number[]> {
  const step = Math.max(1, Math.floor(sandboxes.length / EXECS));
  const chosen = sandboxes.filter((_, at) => at % step === 0).slice(0, EXECS);
  for (const sandbox of chosen) await sandbox.exec([TRUE_PATH]);
  const samples: number[] = [];
  while (samples.length < EXECS) {
    signal.throwIfAborted();
    samples.push(...(await timeTrue(nextInTurn(chosen), TRUE_PATH)));
  }
  return samples;
}

async function timeLists(client: Client, size: number): Promise<number[]> {
  const samples: number[] = [];
  for (let turn = 0; turn <= LISTS; turn++) {
    const startedAt = performance.now();
    let count = 0;
    for await (const _ of client.sandboxes.list({ pageSize: 1000 })) count++;
    // The first one is a warm-up.
    if (turn > 0) samples.push(performance.now() - startedAt);
    if (count !== size) throw new Error(`a list of ${size} sandboxes had ${count}`);
  }
  return samples;
}
