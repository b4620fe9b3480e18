import type { StoreKind } from "../chaos-bed.ts";
import type { Random } from "../random.ts";
import { requests } from "../requests.ts";
import { clockFaults } from "./clock-faults.ts";
import { diskFaults, storeDiskFaults } from "./disk-faults.ts";
import type { Fault } from "./fault.ts";
import { instanceFaults } from "./instance-faults.ts";
import { networkFaults } from "./network-faults.ts";
import { nodeFaults } from "./node-faults.ts";
import { objectFaults } from "./object-faults.ts";
import { storeFaults } from "./store-faults.ts";

/** Below the number of areas, of which a round never has two faults. */
const AT_ONCE = [2, 5] as const;

export interface PlannedFault {
  readonly fault: Fault;
  /** The index of the sandbox among those in use. */
  readonly sandbox: number;
  readonly afterMs: number;
  readonly seed: number;
}

/** Faults of different areas at the same time, and a client's request. */
export interface PlannedRound {
  readonly faults: readonly PlannedFault[];
  readonly request: {
    readonly name: string;
    readonly sandbox: number;
    readonly afterMs: number;
    readonly seed: number;
  };
  /** Whether the next round waits until every sandbox works again. */
  readonly settles: boolean;
}

export interface FaultPlanOptions {
  /** The total of all rounds. */
  readonly faults: number;
  readonly store: StoreKind;
  readonly sandboxes: number;
  readonly random: Random;
}

/** All rounds of a run, before it starts: nothing that happens during the run changes them. */
export function planFaults({ faults: total, store, sandboxes, random }: FaultPlanOptions): readonly PlannedRound[] {
  const deal = dealer(faultsOf(store), random);
  const rounds: PlannedRound[] = [];
  for (let left = total; left > 0; ) {
    const faults: PlannedFault[] = [];
    const count = Math.min(left, random.between(...AT_ONCE));
    while (faults.length < count) {
      const fault = deal(faults.map((planned) => planned.fault.area));
      faults.push({ fault, ...plan(random, sandboxes) });
    }
    const [name] = random.pick(requests);
    rounds.push({ faults, request: { name, ...plan(random, sandboxes) }, settles: random.next() < 0.5 });
    left -= count;
  }
  return rounds;
}

export function faultsOf(store: StoreKind): readonly Fault[] {
  return [
    ...nodeFaults,
    ...instanceFaults,
    ...(store === "s3" ? storeFaults : storeDiskFaults),
    ...diskFaults,
    ...networkFaults,
    ...objectFaults,
    ...clockFaults,
  ];
}

function plan(random: Random, sandboxes: number) {
  return {
    sandbox: random.between(0, sandboxes - 1),
    afterMs: random.between(0, 1500),
    seed: random.between(0, 2 ** 31),
  };
}

/** Deals every fault equally often, in random order, and none of the given areas. */
function dealer(all: readonly Fault[], random: Random): (except: readonly Fault["area"][]) => Fault {
  let deck: Fault[] = [];
  return (except) => {
    const fits = ({ area }: Fault) => !except.includes(area);
    if (!deck.some(fits)) deck = [...deck, ...random.shuffle(all)];
    const [fault] = deck.splice(deck.findIndex(fits), 1);
    return fault as Fault;
  };
}
