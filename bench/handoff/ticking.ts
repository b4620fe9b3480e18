import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/sdk";
import { longestGap } from "./longest-gap.ts";

/** Before and after what is measured, so that the service is known to be there. */
const STEADY_TICKS = 25;
const LOOK_MS = 5;
const PATIENCE_MS = 60_000;

export interface Interruption {
  /** The longest time in which the client got nothing. */
  readonly gapMs: number;
  /** How long what interrupted it took to return. */
  readonly tookMs: number;
}

/** Reads from a program that writes all the time, while something happens to its sandbox. */
export async function whileTicking(
  sandbox: Sandbox,
  program: string,
  happening: () => Promise<unknown>,
): Promise<Interruption> {
  const process = await sandbox.start([program]);
  const arrivals: number[] = [];
  const reading = readAll(process.stdout, arrivals);
  await ticks(arrivals, STEADY_TICKS);
  const startedAt = performance.now();
  await happening();
  const tookMs = performance.now() - startedAt;
  await ticks(arrivals, STEADY_TICKS);
  const gapMs = longestGap(arrivals, startedAt);
  await process.kill();
  await reading;
  return { gapMs, tookMs };
}

async function readAll(output: AsyncIterable<Uint8Array>, arrivals: number[]): Promise<void> {
  for await (const _ of output) arrivals.push(performance.now());
}

async function ticks(arrivals: readonly number[], count: number): Promise<void> {
  const enough = arrivals.length + count;
  for (const untilMs = performance.now() + PATIENCE_MS; arrivals.length < enough; await sleep(LOOK_MS)) {
    if (performance.now() > untilMs) throw new Error("the program in the sandbox went silent");
  }
}
