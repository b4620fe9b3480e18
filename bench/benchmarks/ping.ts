import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";

export const benchmark: Benchmark = {
  title: "The shortest call",
  method: "One ping and its answer on an open channel.",
  order: 40,
  timeLimitMs: 60_000,
  async run(context) {
    const measured = await compare(context, {
      name: "ping",
      rounds: 40,
      entries: entriesOf({ floor: 20, "sandpiper-gvisor": 20, "local-process": 20 }, (subject, count) =>
        subject.ping?.(count),
      ),
    });
    return { ...measured, targets: [] };
  },
};
