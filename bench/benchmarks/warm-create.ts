import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";
import { atLeast, atMost, p50Of, ratio } from "../report.ts";

const NODE = "sandpiper-node";
const EXEC = "sandpiper-gvisor, exec alone";

export const benchmark: Benchmark = {
  title: "Create over HTTP from a warm pool, until a program's output arrives",
  method:
    "Two HTTP requests to a node: one creates a sandbox from the pool, the other runs a static program in it that prints a line. The time ends when the client receives the output. Refilling the pool and destroying the sandbox are excluded. Compared to the agent's own exec of the same command, embedded without a server, in a sandbox that has run it before; and to docker run. All three use the same image of static programs.",
  order: 22,
  timeLimitMs: 180_000,
  async run(context) {
    const { results, problems } = await compare(context, {
      name: "warm-create",
      rounds: 25,
      entries: [
        ...entriesOf({ [NODE]: 1, docker: 1 }, (subject) => subject.createToFirstOutput?.()),
        {
          subject: "sandpiper-gvisor",
          label: EXEC,
          perRound: 4,
          operation: (subject, count) => subject.execSay?.(count),
        },
      ],
    });
    const ours = p50Of(results, NODE);
    return {
      results,
      problems,
      targets: [
        atMost(
          "warm-create: times as long as the agent's own exec of the same command",
          ratio(ours, p50Of(results, EXEC)),
          3,
        ),
        atLeast("warm-create: times faster than docker run", ratio(p50Of(results, "docker"), ours), 25),
      ],
    };
  },
};
