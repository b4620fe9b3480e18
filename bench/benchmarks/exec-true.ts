import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";
import { atLeast, atMost, combine, p50Of } from "../report.ts";

export const benchmark: Benchmark = {
  title: "Run a static `true` in a sandbox that is there",
  method:
    "From the call until the exit status is in the host program. All run the same static binary; floor and Sandpiper take turns over four instances each. The floor is asked by a C program; runsc exec, docker exec and local-process are started by the bench's Node program, so local-process shows what that start costs.",
  order: 30,
  timeLimitMs: 180_000,
  async run(context) {
    const { results, problems } = await compare(context, {
      name: "exec-true",
      rounds: 40,
      entries: entriesOf(
        { floor: 10, "sandpiper-gvisor": 10, "raw-runsc": 1, docker: 1, "local-process": 2 },
        (subject) => subject.execTrue?.bind(subject),
      ),
    });
    const ours = p50Of(results, "sandpiper-gvisor");
    const times = (subject: string) => combine([p50Of(results, subject), ours], (theirs, own) => theirs / own);
    return {
      results,
      problems,
      targets: [
        atMost(
          "exec-true: ms over the bare floor",
          combine([ours, p50Of(results, "floor")], (own, floor) => own - floor),
          0.7,
        ),
        atLeast("exec-true: times faster than runsc exec", times("raw-runsc"), 4),
        atLeast("exec-true: times faster than docker exec", times("docker"), 15),
      ],
    };
  },
};
