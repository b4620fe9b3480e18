import { setTimeout as sleep } from "node:timers/promises";
import { noTrouble, type StoreTrouble } from "../store-proxy.ts";
import type { Fault } from "./fault.ts";

const MOST_MS = 6000;

const troubled =
  (trouble: (worst: number, leaseMs: number) => Partial<StoreTrouble>): Fault["inject"] =>
  async ({ bed, random, log }) => {
    const { proxy } = bed.shared;
    if (proxy === undefined) throw new Error("this store has no proxy");
    const worst = random.pick([0.2, 0.5, 1]);
    const forMs = random.between(500, MOST_MS);
    const chosen = trouble(worst, bed.leaseMs);
    log(`store: ${JSON.stringify(chosen)} for ${forMs} ms`);
    proxy.trouble = { ...noTrouble, ...chosen };
    await sleep(forMs);
    proxy.heal();
  };

/** Only for a store behind a proxy. */
export const storeFaults: readonly Fault[] = [
  { area: "store", kind: "store: 500 and 503", inject: troubled((errors) => ({ errors })) },
  { area: "store", kind: "store: requests cut", inject: troubled((cuts) => ({ cuts })) },
  { area: "store", kind: "store: answers cut", inject: troubled((lostAnswers) => ({ lostAnswers })) },
  { area: "store", kind: "store: delays", inject: troubled((worst, leaseMs) => ({ delayMs: worst * leaseMs })) },
];
