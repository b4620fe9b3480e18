import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf, execTrue } from "../compare.ts";
import { atLeast, atMost, combine, joined, p50Of, ratio } from "../report.ts";

/** Longer than the agent works after it has answered. */
const REST_MS = 5;
const ROUNDS = 20;
const AT_REST = "exec-true";
const BACK_TO_BACK = "exec-true, back to back";

export const benchmark: Benchmark = {
  title: "Run a static `true` in a running sandbox",
  method: `From the call until the host program receives the exit status. All run the same static binary. floor and Sandpiper alternate over four instances each, 40 execs at a time, with a pause of ${REST_MS} ms before each exec, as for a client that waits for each answer; the second table is without the pause. A C program queries floor. The benchmark's Node program starts runsc exec, docker exec and local-process, so local-process shows the cost of that start.`,
  order: 30,
  timeLimitMs: 180_000,
  async run(context) {
    const perRound = { floor: 40, "sandpiper-gvisor": 40 };
    const atRest = await compare(context, {
      name: AT_REST,
      rounds: ROUNDS,
      entries: entriesOf({ ...perRound, "raw-runsc": 2, docker: 2, "local-process": 4 }, execTrue(REST_MS)),
    });
    const backToBack = await compare(context, {
      name: BACK_TO_BACK,
      rounds: ROUNDS,
      entries: entriesOf(perRound, execTrue(0)),
    });
    const ours = p50Of(atRest.results, "sandpiper-gvisor");
    const times = (subject: string) => ratio(p50Of(atRest.results, subject), ours);
    return {
      ...joined([atRest, backToBack]),
      targets: [
        atMost(
          "exec-true: ms over the bare floor",
          combine([ours, p50Of(atRest.results, "floor")], (own, floor) => own - floor),
          0.7,
        ),
        atLeast("exec-true: times faster than runsc exec", times("raw-runsc"), 4),
        atLeast("exec-true: times faster than docker exec", times("docker"), 15),
      ],
    };
  },
};
