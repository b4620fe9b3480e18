import type { Benchmark } from "../benchmark.ts";
import { atMost, type Result, resultOf } from "../report.ts";
import { mean } from "../statistics.ts";

const LIVE = 50;
const SUBJECTS = ["sandpiper-gvisor", "raw-runsc", "docker", "local-process"];

export const benchmark: Benchmark = {
  title: `Memory of an idle sandbox with ${LIVE} live (PSS of all its processes)`,
  method:
    "PSS from smaps_rollup of every process that names the instance and of its descendants, two seconds after the last start. Processes shared by all instances (dockerd, containerd, Sandpiper's host program) are excluded.",
  order: 60,
  timeLimitMs: 300_000,
  async run(context) {
    const results: Result[] = [];
    const problems: string[] = [];
    let oursMb: number | null = null;
    // One subject after the other, because subjects that run the same programs would share pages.
    for (const subject of SUBJECTS) {
      context.signal.throwIfAborted();
      context.progress(`${subject}: ${LIVE} at once`);
      try {
        const sizes = await (await context.openSubject(subject)).idleMemory?.(LIVE, context.signal);
        if (sizes === undefined) throw new Error("the subject does not support this operation");
        results.push(resultOf("idle-memory", subject, sizes, "MB"));
        if (subject === "sandpiper-gvisor") oursMb = mean(sizes);
      } catch (error) {
        problems.push(`idle-memory, ${subject}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return { results, problems, targets: [atMost(`idle-memory: MB per sandbox with ${LIVE} live`, oursMb, 15)] };
  },
};
