import { fileURLToPath } from "node:url";
import type { Benchmark } from "../benchmark.ts";
import { measure, onePerRound } from "../interleave.ts";
import { atMost, p50Of, ratio } from "../report.ts";
import { timeToExit } from "../timed-run.ts";

const NAME = "cli-version";
const ROUNDS = 40;
const BARE = "node -e 0";
const OURS = "sandpiper --version";
const sandpiper = fileURLToPath(new URL("../../packages/cli/bin/sandpiper", import.meta.url));

export const benchmark: Benchmark = {
  title: "Start the command line",
  method: `From the start of \`${OURS}\` in the clone until it has exited, against \`${BARE}\` of the same Node.js, which is the least that a program for it takes.`,
  order: 25,
  timeLimitMs: 120_000,
  async run(context) {
    const contestants = onePerRound({
      [BARE]: () => timeToExit(process.execPath, ["-e", "0"]),
      [OURS]: () => timeToExit(sandpiper, ["--version"]),
    });
    const { results, problems } = await measure(contestants, { name: NAME, rounds: ROUNDS, context });
    return {
      results,
      targets: [atMost(`${NAME}: times as long as ${BARE}`, ratio(p50Of(results, OURS), p50Of(results, BARE)), 2)],
      problems,
    };
  },
};
