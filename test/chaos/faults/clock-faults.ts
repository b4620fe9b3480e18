import { setTimeout as sleep } from "node:timers/promises";
import { MAX_SKEW_MS } from "../chaos-bed.ts";
import type { Fault } from "./fault.ts";

/** Leases assume that each clock is at most this wrong. */
const MOST_MS = MAX_SKEW_MS / 2;

const jumped =
  (sign: 1 | -1): Fault["inject"] =>
  async ({ bed, random, log }) => {
    const node = random.pick(bed.nodes);
    const byMs = sign * random.between(MOST_MS / 2, MOST_MS);
    const forMs = random.between(500, 5000);
    log(`clock of ${node.name} jumps by ${byMs} ms, and back after ${forMs} ms`);
    node.clock.shift(byMs);
    await sleep(forMs);
    node.clock.shift(0);
  };

export const clockFaults: readonly Fault[] = [
  { area: "clock", kind: "clock: jump ahead", inject: jumped(1) },
  { area: "clock", kind: "clock: jump back", inject: jumped(-1) },
];
