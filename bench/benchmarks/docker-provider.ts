import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf, execTrue } from "../compare.ts";
import { atLeast, atMost, joined, p50Of, ratio } from "../report.ts";

const CREATE = "docker-provider, create";
const EXEC = "docker-provider, exec";
const OURS = "sandpiper-docker";
/** The same as in exec-true. */
const REST_MS = 5;

export const benchmark: Benchmark = {
  title: "Containers: create until the agent answers, and run a static `true`",
  method:
    "All on one Docker Engine with one image of static programs, without a network. Create: from the call until the agent inside answers, including data volume and limits; compared to a bare create and start over the engine's API. Exec: from the call until the host program receives the exit status; the benchmark's Node program starts `docker exec`. Removal is excluded.",
  order: 35,
  timeLimitMs: 240_000,
  async run(context) {
    const create = await compare(context, {
      name: CREATE,
      rounds: 25,
      entries: entriesOf({ [OURS]: 1, "docker-api": 1 }, (subject) => subject.createToReady?.()),
    });
    const exec = await compare(context, {
      name: EXEC,
      rounds: 20,
      entries: entriesOf({ [OURS]: 40, docker: 2 }, execTrue(REST_MS)),
    });
    const both = joined([create, exec]);
    const of = (subject: string, name: string) => p50Of(both.results, subject, name);
    return {
      ...both,
      targets: [
        atMost(
          "docker-provider: create, times as long as the engine's own create and start",
          ratio(of(OURS, CREATE), of("docker-api", CREATE)),
          1.3,
        ),
        atLeast("docker-provider: exec, times faster than docker exec", ratio(of("docker", EXEC), of(OURS, EXEC)), 8),
      ],
    };
  },
};
