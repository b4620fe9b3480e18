import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { guestPrograms } from "../guest-programs.ts";
import { listLeft } from "../leftovers.ts";
import { atMost, joined, type Report, resultOf } from "../report.ts";
import { HostProcess } from "../scale/host-process.ts";
import { percentile } from "../statistics.ts";

const SHOWN_LEFTOVERS = 10;
const SUBJECT = "sandpiper-gvisor";

export const benchmark: Benchmark = {
  title: "Hundreds of live sandboxes, each answering an exec; then destroyed, also after kill -9 of the host program",
  method:
    "A separate host program boots them four at a time and runs a static `true` in each, sequentially, three times; the first exec in each is cold. Leftovers are searched for by id and by path: processes, mounts, cgroups, directories, files, FIFOs.",
  order: 70,
  timeLimitMs: 900_000,
  async run(context) {
    const home = await context.workspace.makeDir("scale");
    const { true: truePath } = await guestPrograms(context.workspace);
    const startHost = () => {
      const host = context.workspace.own(HostProcess.start({ home, truePath }));
      context.signal.addEventListener("abort", () => host.kill(), { once: true });
      return host;
    };
    const alive = await answersAndDestroys(startHost(), home, context);
    const killed = await killsAndReconciles(startHost, home, context);
    return joined([alive, killed]);
  },
};

async function answersAndDestroys(host: HostProcess, home: string, context: BenchmarkContext): Promise<Report> {
  const { liveCount } = context;
  context.progress("one sandbox");
  await host.ask({ kind: "create", count: 1 });
  await host.ask({ kind: "exec", rounds: 20 });
  const one = await host.ask({ kind: "exec", rounds: 200 });
  context.progress(`booting ${liveCount}`);
  const boots = await host.ask({ kind: "create", count: liveCount - 1 });
  context.progress(`one exec in each of ${liveCount}, three times`);
  const all = await host.ask({ kind: "exec", rounds: 3 });
  context.progress("destroying them");
  await host.ask({ kind: "destroy" });
  await host.kill();
  const left = await listLeft(home, all.ids);
  const result = (name: string, samples: readonly number[]) => resultOf(name, SUBJECT, samples);
  const ratio = percentile(all.samples, 99) / percentile(one.samples, 50);
  return {
    results: [
      result("scale exec, 1 live", one.samples),
      result(`scale exec, ${liveCount} live`, all.samples),
      result(`scale create, up to ${liveCount} live, 4 at a time`, boots.samples),
    ],
    targets: [
      atMost(`scale: p99 of exec with ${liveCount} live, times the p50 with one`, ratio, 10),
      atMost(`scale: sandboxes of ${liveCount} that did not answer`, liveCount - all.samples.length / 3, 0),
      atMost("scale: leftovers after destroying them", left.length, 0),
    ],
    problems: describeLeft("destroying them", left),
  };
}

async function killsAndReconciles(
  startHost: () => HostProcess,
  home: string,
  context: BenchmarkContext,
): Promise<Omit<Report, "results">> {
  const { liveCount } = context;
  context.progress(`booting ${liveCount} for kill -9`);
  const killed = startHost();
  const { ids } = await killed.ask({ kind: "create", count: liveCount });
  await killed.kill();
  if ((await listLeft(home, ids)).length < liveCount)
    throw new Error("the sandboxes did not survive their host program");
  context.progress("a new host program removes them");
  const next = startHost();
  await next.ask({ kind: "reconcile" });
  await next.kill();
  const left = await listLeft(home, ids);
  return {
    targets: [atMost("scale: leftovers after kill -9 and a restart", left.length, 0)],
    problems: describeLeft("kill -9 and a new start", left),
  };
}

function describeLeft(after: string, left: readonly string[]): string[] {
  return left.slice(0, SHOWN_LEFTOVERS).map((one) => `scale, left after ${after}: ${one}`);
}
