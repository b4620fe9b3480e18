import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark } from "../benchmark.ts";
import { RawSaveable } from "../checkpoint/raw-saveable.ts";
import type { Saveable } from "../checkpoint/saveable.ts";
import { interleave } from "../interleave.ts";
import { atMost, combine, p50Of, type Result } from "../report.ts";
import { summarize } from "../statistics.ts";

const MANY = 4;
const ONE = "sandpiper-node, one fork";
const FOUR = `sandpiper-node, ${MANY} forks at once`;
const RAW = "raw-runsc";

export const benchmark: Benchmark = {
  title: "Fork a running sandbox",
  method: `Through the SDK and a node in a process of its own, from the call until it returns with forks that answer, one and ${MANY} at once; the original goes on. Against \`runsc checkpoint --leave-running\` and then \`runsc restore --detach\` by hand, until the second agent answers, bundle and FIFOs ready. Removal does not count.`,
  order: 112,
  timeLimitMs: 180_000,
  async run(context) {
    const { workspace } = context;
    await using stack = new AsyncDisposableStack();
    context.progress("starting a node and sandboxes");
    const home = await workspace.makeDir("fork");
    const dir = await workspace.makeDir("images");
    const node = stack.use(await NodeProcess.start({ home, port: 0, logLevel: "warn" }));
    const sandbox = stack.use(await node.client.sandboxes.create());
    const raw = stack.use(await RawSaveable.start(workspace));
    const contestants = [
      { subject: ONE, perRound: 1, sample: async () => [await timeFork(sandbox, 1)] },
      { subject: FOUR, perRound: 1, sample: async () => [await timeFork(sandbox, MANY)] },
      { subject: RAW, perRound: 1, sample: async () => [await timeRawFork(raw, dir)] },
    ];
    const { samples, problems } = await interleave(contestants, { rounds: 20, context });
    const results: Result[] = [...samples].map(([subject, all]) => {
      return { name: "fork", subject, ...summarize(all), unit: "ms" };
    });
    const ratio = (subject: string, other: string) =>
      combine([p50Of(results, subject), p50Of(results, other)], (own, theirs) => own / theirs);
    return {
      results,
      problems: problems.map((problem) => `fork, ${problem}`),
      targets: [
        atMost("fork: times as long as runsc checkpoint and restore", ratio(ONE, RAW), 1.1),
        atMost(`fork: ${MANY} at once, times as long as one`, ratio(FOUR, ONE), 3),
      ],
    };
  },
};

async function timeFork(sandbox: Sandbox, count: number): Promise<number> {
  const startedAt = performance.now();
  const forks = await sandbox.fork({ count });
  const tookMs = performance.now() - startedAt;
  for (const fork of forks) {
    // Only its agent can answer this.
    await fork.metrics();
    await fork.destroy();
  }
  return tookMs;
}

async function timeRawFork(original: Saveable, dir: string): Promise<number> {
  const image = await mkdtemp(join(dir, "image-"));
  const savedMs = await original.checkpoint(image, { keepsRunning: true });
  const { sandbox, tookMs } = await original.restore(image);
  await sandbox[Symbol.asyncDispose]();
  await rm(image, { recursive: true });
  return savedMs + tookMs;
}
