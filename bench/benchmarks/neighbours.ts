import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { guestPrograms } from "../guest-programs.ts";
import { interleave } from "../interleave.ts";
import { ATTACKS, type Attack } from "../neighbours/attacks.ts";
import { HostileSandbox } from "../neighbours/hostile-sandbox.ts";
import { atMost, joined, type Report, ratio, resultOf } from "../report.ts";
import { percentile } from "../statistics.ts";
import { timeTrue } from "../timed-run.ts";

const QUIET_SANDBOXES = 4;
const ROUNDS = 8;
const PER_ROUND = 100;
const REST_MS = 5;
/** The attack grows, and after its end the machine's disk and memory come to rest. */
const SETTLE_MS = 700;
const TRUE_PATH = "/tmp/true";
const MAX_RATIO = 2;

export const benchmark: Benchmark = {
  title: `Run a static \`true\` in ${QUIET_SANDBOXES} quiet sandboxes, alone and beside a hostile one`,
  method: `From the call of the SDK until its answer, through a node with default settings in a separate process, in each quiet sandbox in turn, after a pause of ${REST_MS} ms. For each attack, ${PER_ROUND} execs alone and ${PER_ROUND} beside a new hostile sandbox alternate in ${ROUNDS} rounds. The hostile sandbox has the default limits. A separate process of the lowest priority reads its terminals and watches, or keeps running commands in it.`,
  order: 97,
  timeLimitMs: 1_200_000,
  async run(context) {
    const home = await context.workspace.makeDir("neighbours");
    const programs = await guestPrograms(context.workspace);
    const node = context.workspace.own(await NodeProcess.start({ home, port: 0, logLevel: "error" }));
    const quiet: Sandbox[] = [];
    for (let k = 0; k < QUIET_SANDBOXES; k++) {
      const sandbox = await node.client.sandboxes.create();
      await sandbox.files.write(TRUE_PATH, await readFile(programs.true), { mode: 0o755 });
      quiet.push(sandbox);
    }
    const reports: Report[] = [];
    for (const attack of ATTACKS) {
      context.progress(attack.name);
      const start = () => HostileSandbox.start(node, programs.attack, attack);
      reports.push(await beside(attack, { quiet, start, context }));
    }
    await Promise.all(quiet.map((sandbox) => sandbox.destroy()));
    return joined(reports);
  },
};

interface BesideOptions {
  readonly quiet: readonly Sandbox[];
  readonly start: () => Promise<HostileSandbox>;
  readonly context: BenchmarkContext;
}

async function beside({ name }: Attack, { quiet, start, context }: BesideOptions): Promise<Report> {
  const execs = async (count: number) => {
    const samples: number[] = [];
    for (let k = 0; k < count; k++) {
      samples.push(...(await timeTrue(quiet[k % quiet.length] as Sandbox, TRUE_PATH, { restMs: REST_MS })));
    }
    return samples;
  };
  const { samples, problems } = await interleave(
    [
      {
        subject: "alone",
        perRound: PER_ROUND,
        sample: async (count) => {
          await sleep(SETTLE_MS);
          return await execs(count);
        },
      },
      {
        subject: "beside it",
        perRound: PER_ROUND,
        sample: async (count) => {
          await using _hostile = await start();
          await sleep(SETTLE_MS);
          return await execs(count);
        },
      },
    ],
    { rounds: ROUNDS, context },
  );
  const results = [...samples].map(([subject, taken]) => ({
    ...resultOf(`neighbours, ${name}`, subject, taken),
    p99: percentile(taken, 99),
  }));
  const p99 = (subject: string) => results.find((one) => one.subject === subject)?.p99 ?? null;
  return {
    results,
    problems: problems.map((problem) => `neighbours, ${name}, ${problem}`),
    targets: [
      atMost(`neighbours: p99 of exec beside ${name}, times alone`, ratio(p99("beside it"), p99("alone")), MAX_RATIO),
    ],
  };
}
