import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { startEmbedded } from "../checkpoint/embedded-saveable.ts";
import { startRaw } from "../checkpoint/raw-saveable.ts";
import { type SavedAndRestored, saveAndRestore } from "../checkpoint/save-and-restore.ts";
import { interleave, onePerRound } from "../interleave.ts";
import { atMost, joined, p50Of, type Report, ratio, resultOf } from "../report.ts";

const OURS = "sandpiper-gvisor";
const AHEAD = "sandpiper-gvisor, prepared instance";
const RAW = "raw-runsc";
const EXECS = 500;
const USES = [
  { execs: 0, after: "", rounds: 20 },
  { execs: EXECS, after: `, after ${EXECS} execs`, rounds: 6 },
];
const FIGURES = {
  "checkpoint, left running": "runningMs",
  "checkpoint, stopped": "stoppingMs",
  "checkpoint, restore": "restoreMs",
} as const satisfies Record<string, keyof SavedAndRestored>;

export const benchmark: Benchmark = {
  title: "Checkpoint and restore a small sandbox",
  method: `Checkpoint: until the whole sandbox is in files; it keeps running, or stops. Restore: from those files until the agent inside answers. raw-runsc: \`runsc checkpoint\` with and without --leave-running, and \`runsc restore --detach\` with bundle and FIFOs in place. Sandpiper: all of Sandbox.checkpoint, including quiescing the agent; then preparing an instance and restoring into it. The same again after ${EXECS} execs of \`true\`.`,
  order: 110,
  timeLimitMs: 180_000,
  async run(context) {
    const reports: Report[] = [];
    for (const use of USES) reports.push(await measure(context, use));
    return joined(reports);
  },
};

async function measure(context: BenchmarkContext, { execs, after, rounds }: (typeof USES)[number]): Promise<Report> {
  const { workspace } = context;
  const dir = await workspace.makeDir("images");
  await using stack = new AsyncDisposableStack();
  context.progress(`starting sandboxes${after}`);
  const ours = stack.use(await startEmbedded(workspace));
  const raw = stack.use(await startRaw(workspace));
  const turns = {
    [OURS]: () => saveAndRestore(ours, { dir, execs }),
    [RAW]: () => saveAndRestore(raw, { dir, execs }),
  };
  for (const original of [ours, raw]) await original.use(execs);
  const { samples, problems } = await interleave(onePerRound(turns), { rounds, context });
  const results = Object.entries(FIGURES).flatMap(([name, figure]) =>
    [...samples].map(([subject, all]) => {
      const figures = all.map((one) => one[figure]);
      return resultOf(name + after, subject, figures);
    }),
  );
  const filledMs = samples.get(OURS)?.map((one) => one.filledMs);
  if (filledMs !== undefined) results.push(resultOf(`checkpoint, restore${after}`, AHEAD, filledMs));
  return {
    results,
    problems: problems.map((problem) => `checkpoint${after}, ${problem}`),
    targets: Object.keys(FIGURES).map((name) => {
      const p50 = (subject: string) => p50Of(results, subject, name + after);
      return atMost(`${name}${after}: times as long as runsc`, ratio(p50(OURS), p50(RAW)), 1.3);
    }),
  };
}
