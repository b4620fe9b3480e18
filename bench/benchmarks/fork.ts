import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark } from "../benchmark.ts";
import { startRaw } from "../checkpoint/raw-saveable.ts";
import type { Saveable } from "../checkpoint/saveable.ts";
import { measure, onePerRound } from "../interleave.ts";
import { atMost, p50Of, ratio } from "../report.ts";

const MANY = 4;
const ONE = "sandpiper-node, one fork";
const FIRST = "sandpiper-node, the first fork of its shape";
const FOUR = `sandpiper-node, ${MANY} forks at once`;
const RAW = "raw-runsc";
/** The default memory; each larger size is a shape that was never forked. */
const DEFAULT_MIB = 256;
/** The node prepares the next instance in this time, outside the measured turns. */
const REST_MS = 200;

export const benchmark: Benchmark = {
  title: "Fork a running sandbox",
  method: `Through the SDK and a node in a separate process, from the call until it returns with forks that answer, one and ${MANY} at once; the original keeps running. After a fork the node keeps one prepared instance for the next fork of the same shape (memory, CPUs, disk, image). So one fork finds a prepared instance, four forks find one for the four, and the first fork of a shape finds none. Compared to \`runsc checkpoint --leave-running\` and then \`runsc restore --detach\` by hand, until the second agent answers, with bundle and FIFOs in place. Each turn starts after a pause of ${REST_MS} ms; removal is excluded.`,
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
    const raw = stack.use(await startRaw(workspace));
    const turns = {
      [ONE]: () => timeFork(sandbox, 1),
      [FOUR]: () => timeFork(sandbox, MANY),
      [FIRST]: firstForks(node.client),
      [RAW]: () => timeRawFork(raw, dir),
    };
    const { results, problems } = await measure(onePerRound(turns, REST_MS), { name: "fork", rounds: 14, context });
    const times = (subject: string, other: string) => ratio(p50Of(results, subject), p50Of(results, other));
    return {
      results,
      problems,
      targets: [
        atMost("fork, prepared instance: times as long as runsc checkpoint and restore", times(ONE, RAW), 1.1),
        atMost(`fork: ${MANY} at once, times as long as one`, times(FOUR, ONE), 3),
      ],
    };
  },
};

async function timeFork(sandbox: Sandbox, count: number): Promise<number> {
  const startedAt = performance.now();
  const forks = await sandbox.fork({ count });
  const tookMs = performance.now() - startedAt;
  for (const fork of forks) {
    // Only the agent can answer this.
    await fork.metrics();
    await fork.destroy();
  }
  return tookMs;
}

/** Each sandbox has another shape. */
function firstForks(client: Client): () => Promise<number> {
  let memoryMib = DEFAULT_MIB;
  return async () => {
    memoryMib++;
    await using sandbox = await client.sandboxes.create({ memoryMib });
    // Excludes work that the boot left unfinished.
    await sleep(REST_MS);
    return await timeFork(sandbox, 1);
  };
}

async function timeRawFork(original: Saveable, dir: string): Promise<number> {
  const image = await mkdtemp(join(dir, "image-"));
  const savedMs = await original.checkpoint(image, { keepsRunning: true });
  const { sandbox, tookMs } = await original.restore(image);
  await sandbox[Symbol.asyncDispose]();
  await rm(image, { recursive: true });
  return savedMs + tookMs;
}
