import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/sdk";
import { startS3Server } from "../../packages/node/src/store/testing/s3-server.ts";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { startRaw } from "../checkpoint/raw-saveable.ts";
import { saveAndRestore } from "../checkpoint/save-and-restore.ts";
import type { Saveable } from "../checkpoint/saveable.ts";
import { guestPrograms } from "../guest-programs.ts";
import { NodePair } from "../handoff/node-pair.ts";
import { type Interruption, whileTicking } from "../handoff/ticking.ts";
import { interleave, onePerRound } from "../interleave.ts";
import { atMost, p50Of, type Result, ratio, resultOf } from "../report.ts";

const RAW = "raw-runsc, checkpoint and restore";
const DIRECTORY = "sandpiper-node, directory";
const S3 = "sandpiper-node, S3";
const GAP = "handoff, no service";
const TICK_PATH = "/tmp/tick";
const FILE_PATH = "/tmp/changed";
const ROUNDS = 12;
const CHANGED_ROUNDS = 3;
const LARGEST_MB = 200;
/** S3 is slow with large sizes; one size shows that it grows in the same way. */
const CHANGED_MB = { [DIRECTORY]: [0, 10, 50, LARGEST_MB], [S3]: [LARGEST_MB] };
const LARGEST_GAP_S = 2;
const BUCKET = "bench";

export const benchmark: Benchmark = {
  title: "Hand a running sandbox from one node to another",
  method: `Two nodes on this machine share a store. A program in the sandbox writes a line every 2 ms, and a client of the first node reads it through the SDK. The figure is the longest time without output for the client while the sandbox moves to the other node, back and forth in turn. Compared to \`runsc checkpoint\` and then \`runsc restore --detach\` by hand. Then the same after the given megabytes of random files were written in the sandbox, ${CHANGED_ROUNDS} times each.`,
  order: 114,
  timeLimitMs: 300_000,
  async run(context) {
    await using stack = new AsyncDisposableStack();
    context.progress("starting nodes");
    const { directory, s3 } = await startPairs(context, stack);
    const raw = stack.use(await startRaw(context.workspace));
    const dir = await context.workspace.makeDir("images");
    const ours = async (pair: NodePair) => {
      const sandbox = stack.use(await createTicking(pair, context));
      return () => timeHandoff(pair, sandbox);
    };
    const turns = { [DIRECTORY]: await ours(directory), [S3]: await ours(s3), [RAW]: () => timeRaw(raw, dir) };
    const { samples, problems } = await interleave(onePerRound(turns), { rounds: ROUNDS, context });
    const gaps = [...samples].map(([subject, all]) => resultOf(GAP, subject, gapsOf(all)));
    const calls = [...samples]
      .filter(([subject]) => subject !== RAW)
      .map(([subject, all]) => {
        const callsMs = all.map(({ tookMs }) => tookMs);
        return resultOf("handoff, until the call returns", subject, callsMs);
      });
    const changed: Result[] = [];
    for (const [subject, pair] of [
      [DIRECTORY, directory],
      [S3, s3],
    ] as const) {
      for (const mb of CHANGED_MB[subject]) changed.push(await measureChanged(context, { subject, pair, mb }));
    }
    const times = (subject: string) => ratio(p50Of(gaps, subject), p50Of(gaps, RAW));
    const seconds = (subject: string) => ratio(p50Of(changed, subject, changedName(LARGEST_MB)), 1000);
    return {
      results: [...gaps, ...calls, ...changed],
      problems: problems.map((problem) => `handoff, ${problem}`),
      targets: [
        atMost("handoff: no service with a directory, times runsc checkpoint and restore", times(DIRECTORY), 1.5),
        atMost("handoff: no service with S3, times runsc checkpoint and restore", times(S3), 2.5),
        atMost(
          `handoff: seconds without service, ${LARGEST_MB} MB changed, directory`,
          seconds(DIRECTORY),
          LARGEST_GAP_S,
        ),
        atMost(`handoff: seconds without service, ${LARGEST_MB} MB changed, S3`, seconds(S3), LARGEST_GAP_S),
      ],
    };
  },
};

async function startPairs({ workspace }: BenchmarkContext, stack: AsyncDisposableStack) {
  const dir = await workspace.makeDir("handoff");
  const server = stack.use(await startS3Server());
  await server.createBucket(BUCKET);
  // The nodes are child processes and inherit this environment.
  Object.assign(process.env, server.env);
  const directory = stack.use(await NodePair.start({ dir: join(dir, "d"), store: `file://${join(dir, "store")}` }));
  const s3 = stack.use(await NodePair.start({ dir: join(dir, "s"), store: `s3://${BUCKET}/nodes` }));
  return { directory, s3 };
}

async function createTicking({ client }: NodePair, { workspace }: BenchmarkContext): Promise<Sandbox> {
  const sandbox = await client.sandboxes.create();
  await sandbox.files.write(TICK_PATH, await readFile((await guestPrograms(workspace)).tick), { mode: 0o755 });
  return sandbox;
}

function timeHandoff(pair: NodePair, sandbox: Sandbox): Promise<Interruption> {
  return whileTicking(sandbox, TICK_PATH, () => pair.handOff(sandbox.id));
}

async function timeRaw(original: Saveable, dir: string): Promise<Interruption> {
  const { stoppingMs, restoreMs } = await saveAndRestore(original, { dir, execs: 0 });
  const tookMs = stoppingMs + restoreMs;
  return { gapMs: tookMs, tookMs };
}

/** Uses a new sandbox, because earlier changes would count even if deleted. */
async function measureChanged(
  context: BenchmarkContext,
  { subject, pair, mb }: { readonly subject: string; readonly pair: NodePair; readonly mb: number },
): Promise<Result> {
  await using sandbox = await createTicking(pair, context);
  const samples: Interruption[] = [];
  for (let round = 0; round < CHANGED_ROUNDS; round++) {
    context.signal.throwIfAborted();
    context.progress(`${subject}: ${mb} MB changed, ${round + 1} of ${CHANGED_ROUNDS}`);
    const { exitCode } = await sandbox.exec(`head -c ${mb * 1_000_000} /dev/urandom > ${FILE_PATH}`);
    if (exitCode !== 0) throw new Error(`failed to write ${mb} MB in sandbox ${sandbox.id}`);
    samples.push(await timeHandoff(pair, sandbox));
  }
  return resultOf(changedName(mb), subject, gapsOf(samples));
}

function changedName(mb: number): string {
  return `handoff, no service, ${mb} MB changed`;
}

function gapsOf(samples: readonly Interruption[]): number[] {
  return samples.map(({ gapMs }) => gapMs);
}
