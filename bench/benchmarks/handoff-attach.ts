import { join } from "node:path";
import type { Benchmark } from "../benchmark.ts";
import { startRaw } from "../checkpoint/raw-saveable.ts";
import { saveAndRestore } from "../checkpoint/save-and-restore.ts";
import { NodePair } from "../handoff/node-pair.ts";
import { interleave, onePerRound } from "../interleave.ts";
import { atMost, p50Of, ratio, resultOf } from "../report.ts";

const RAW = "raw-runsc, checkpoint and restore";
const DIRECTORY = "sandpiper-node, directory";
const ROUNDS = 12;

export const benchmark: Benchmark = {
  title: "Attach to a sandbox that runs on another node",
  method:
    "Two nodes on this machine share a directory. A client opens `WS /attach/<id>` on the node that does not run the sandbox; the figure is the time until it receives `SANDBOX_RUNNING`, with the connection, the handoff and the restore. The sandbox moves back and forth in turn. Compared to `runsc checkpoint` and then `runsc restore --detach` by hand.",
  order: 115,
  timeLimitMs: 120_000,
  async run(context) {
    await using stack = new AsyncDisposableStack();
    context.progress("starting nodes");
    const dir = await context.workspace.makeDir("attach");
    const pair = stack.use(await NodePair.start({ dir, store: `file://${join(dir, "store")}` }));
    const sandbox = stack.use(await pair.client.sandboxes.create());
    const raw = stack.use(await startRaw(context.workspace));
    const images = await context.workspace.makeDir("images");
    const turns = {
      [DIRECTORY]: () => pair.attach(sandbox.id),
      [RAW]: async () => {
        const { stoppingMs, restoreMs } = await saveAndRestore(raw, { dir: images, execs: 0 });
        return stoppingMs + restoreMs;
      },
    };
    const { samples, problems } = await interleave(onePerRound(turns), { rounds: ROUNDS, context });
    const results = [...samples].map(([subject, all]) => resultOf("handoff-attach, until running", subject, all));
    const times = ratio(p50Of(results, DIRECTORY), p50Of(results, RAW));
    return {
      results,
      problems: problems.map((problem) => `handoff-attach, ${problem}`),
      targets: [atMost("handoff-attach: with a directory, times runsc checkpoint and restore", times, 1.6)],
    };
  },
};
