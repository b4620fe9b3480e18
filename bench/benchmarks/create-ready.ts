import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";
import { atMost, p50Of, ratio } from "../report.ts";

export const benchmark: Benchmark = {
  title: "Create, until the agent answers",
  method:
    "From the call until the agent inside answers. For raw-runsc the bundle and FIFOs exist before; Sandpiper creates them within the measured time. docker: until `docker run --detach` returns. Removal is excluded.",
  order: 10,
  timeLimitMs: 180_000,
  async run(context) {
    const { results, problems } = await compare(context, {
      name: "create-ready",
      rounds: 30,
      entries: entriesOf({ "sandpiper-gvisor": 1, "raw-runsc": 1, docker: 1, "local-process": 1 }, (subject) =>
        subject.createToReady?.(),
      ),
    });
    const ours = p50Of(results, "sandpiper-gvisor");
    const timeOf = (subject: string) => ratio(ours, p50Of(results, subject));
    return {
      results,
      problems,
      targets: [
        atMost("create-ready: times as long as runsc run of the same bundle", timeOf("raw-runsc"), 1.2),
        atMost("create-ready: times as long as docker run", timeOf("docker"), 1),
      ],
    };
  },
};
