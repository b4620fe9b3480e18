import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";

export const benchmark: Benchmark = {
  title: "Create, until the first byte of a program's output",
  method:
    "From the call until the host program receives the first byte of output. The program is the host image's /bin/echo in Sandpiper and raw-runsc, and a static program in docker and on the host.",
  order: 20,
  timeLimitMs: 180_000,
  async run(context) {
    const measured = await compare(context, {
      name: "create-first-output",
      rounds: 20,
      entries: entriesOf({ "sandpiper-gvisor": 1, "raw-runsc": 1, docker: 1, "local-process": 1 }, (subject) =>
        subject.createToFirstOutput?.(),
      ),
    });
    return { ...measured, targets: [] };
  },
};
