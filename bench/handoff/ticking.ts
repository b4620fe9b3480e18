import type { Sandbox } from "@sandpiper/sdk";

/** Read before and after the measurement, to be sure that the program writes. */
const STEADY_TICKS = 25;

export interface Interruption {
  /** The longest time without output for the client. */
  readonly gapMs: number;
  /** How long the interrupting call took. */
  readonly tookMs: number;
}

/** Reads from a program that writes continuously, while an action affects its sandbox. */
export async function whileTicking(
  sandbox: Sandbox,
  program: string,
  happening: () => Promise<void>,
): Promise<Interruption> {
  await using process = await sandbox.start([program]);
  const output = process.stdout[Symbol.asyncIterator]();
  const arrivals: number[] = [];
  let enough = STEADY_TICKS;
  const read = async () => {
    while (arrivals.length < enough) {
      if ((await output.next()).done) throw new Error(`the program in sandbox ${sandbox.id} has ended`);
      arrivals.push(performance.now());
    }
  };
  await read();
  enough = Number.POSITIVE_INFINITY;
  const startedAt = performance.now();
  const happened = async () => {
    await happening();
    enough = arrivals.length + STEADY_TICKS;
    return performance.now() - startedAt;
  };
  const [tookMs] = await Promise.all([happened(), read()]);
  return { gapMs: longestGap(arrivals, startedAt), tookMs };
}

/** The longest time between consecutive arrivals, of the gaps that end after an instant; all in milliseconds. */
export function longestGap(arrivals: readonly number[], afterMs: number): number {
  let longest = 0;
  for (const [at, arrival] of arrivals.entries()) {
    const before = arrivals[at - 1];
    if (before !== undefined && arrival > afterMs) longest = Math.max(longest, arrival - before);
  }
  return longest;
}
