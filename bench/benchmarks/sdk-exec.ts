import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf, execTrue } from "../compare.ts";
import { atMost, combine, p50Of, resultOf } from "../report.ts";
import { repeated } from "../timed-run.ts";

const NODE = "sandpiper-node";
const REST_MS = 5;
const ROUNDS = 12;
const MANY = 100;
const MANY_ROUNDS = 5;

export const benchmark: Benchmark = {
  title: "Run a static `true` through the SDK",
  method: `From the call until the client receives the exit status, each after a pause of ${REST_MS} ms: through the SDK and a node in a separate process, compared to the embedded exec of the same program. Then ${MANY} of them in one sandbox, sequentially and all at once.`,
  order: 32,
  timeLimitMs: 180_000,
  async run(context) {
    const { results, problems } = await compare(context, {
      name: "sdk-exec",
      rounds: ROUNDS,
      entries: entriesOf({ [NODE]: 40, "sandpiper-gvisor": 40 }, execTrue(REST_MS)),
    });
    context.progress(`${MANY} at once`);
    const node = await context.openSubject(NODE);
    const many = await repeated(MANY_ROUNDS, async () => (await node.execMany?.(MANY)) ?? { atOnceMs: 0, inARowMs: 0 });
    const result = (how: string, samples: readonly number[]) => resultOf(`sdk-exec, ${MANY} ${how}`, NODE, samples);
    const inARow = result(
      "in a row",
      many.map(({ inARowMs }) => inARowMs),
    );
    const atOnce = result(
      "at once",
      many.map(({ atOnceMs }) => atOnceMs),
    );
    return {
      results: [...results, inARow, atOnce],
      problems,
      targets: [
        atMost(
          "sdk-exec: ms over the embedded exec",
          combine([p50Of(results, NODE), p50Of(results, "sandpiper-gvisor")], (own, embedded) => own - embedded),
          1,
        ),
        atMost(`sdk-exec: ${MANY} at once, times as long as ${MANY} in a row`, atOnce.p50 / inARow.p50, 0.8),
      ],
    };
  },
};
