import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosBed } from "../chaos-bed.ts";
import type { SmallDisk } from "../small-disk.ts";
import type { Fault } from "./fault.ts";

const MIB = 1024 * 1024;
const MOST_MS = 6000;

const full =
  (disksOf: (bed: ChaosBed) => readonly (SmallDisk | undefined)[]): Fault["inject"] =>
  async ({ bed, random, log }) => {
    const disk = random.pick(disksOf(bed));
    if (disk === undefined) throw new Error("this store is not on a small disk");
    const left = random.pick([0, 0, MIB]);
    const forMs = random.between(500, MOST_MS);
    log(`disk ${disk.path} full except for ${left} bytes, for ${forMs} ms`);
    await disk.fill(left);
    await sleep(forMs);
    await disk.free();
  };

export const diskFaults: readonly Fault[] = [
  { area: "disk", kind: "disk: ENOSPC on a home", inject: full(({ nodes }) => nodes.map(({ disk }) => disk)) },
];

/** Only for a store in a directory. */
export const storeDiskFaults: readonly Fault[] = [
  { area: "disk", kind: "disk: ENOSPC on the store", inject: full(({ shared }) => [shared.disk]) },
];
