import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";
import { atLeast, atMost, combine, p50Of } from "../report.ts";

/** Longer than an agent is busy with what it does after it has answered. */
const REST_MS = 5;
const ROUNDS = 20;
const AT_REST = "exec-true";
const BACK_TO_BACK = "exec-true, back to back";

export const benchmark: Benchmark = {
  title: "Run a static `true` in a sandbox that is there",
  method: `From the call until the exit status is in the host program. All run the same static binary; floor and Sandpiper take turns over four instances each, 40 execs at a time, and rest for ${REST_MS} ms before each exec, as somebody who waits for the answer before asking again does; the second table has them without the rest. The floor is asked by a C program; runsc exec, docker exec and local-process are started by the bench's Node program, so local-process shows what that start costs.`,
  order: 30,
  timeLimitMs: 180_000,
  async run(context) {
    const perRound = { floor: 40, "sandpiper-gvisor": 40 };
    const atRest = await compare(context, {
      name: AT_REST,
      rounds: ROUNDS,
      entries: entriesOf(
        { ...perRound, "raw-runsc": 2, docker: 2, "local-process": 4 },
        (subject) => subject.execTrue && (async (count) => (await subject.execTrue?.(count, REST_MS)) ?? []),
      ),
    });
    const backToBack = await compare(context, {
      name: BACK_TO_BACK,
      rounds: ROUNDS,
      entries: entriesOf(
        perRound,
        (subject) => subject.execTrue && (async (count) => (await subject.execTrue?.(count, 0)) ?? []),
      ),
    });
    const ours = p50Of(atRest.results, "sandpiper-gvisor");
    const times = (subject: string) => combine([p50Of(atRest.results, subject), ours], (theirs, own) => theirs / own);
    return {
      results: [...atRest.results, ...backToBack.results],
      problems: [...atRest.problems, ...backToBack.problems],
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
