import { FakeClock } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import type { Cgroups } from "./cgroups.ts";
import { CpuBalance } from "./cpu-balance.ts";

const INTERVAL_MS = 250;
/** What one busy process of the node weighs. */
const NODE_SHARES = 1024;

/** A host whose sandboxes use as many CPUs as `cpus` has for them. */
function host(cpus: Record<string, number>) {
  const clock = new FakeClock();
  const shares = new Map<string, number>();
  const usedUs = new Map<string, number>();
  let reads = 0;
  const cgroups = {
    names: () => [...Object.keys(cpus), "system.slice"],
    cpuUsageUs(path: string) {
      reads++;
      if (path !== "/") return usedUs.get(path);
      return [...usedUs.values()].reduce((sum, used) => sum + used, 0);
    },
    cpuLimit: () => 2,
    setCpuShares: (path: string, value: number) => void shares.set(path, value),
  } as unknown as Cgroups;
  const balance = new CpuBalance(cgroups, clock);
  const pass = async (intervals: number) => {
    for (let k = 0; k < intervals; k++) {
      await clock.advance(INTERVAL_MS);
      for (const [name, count] of Object.entries(cpus)) {
        usedUs.set(`/${name}`, (usedUs.get(`/${name}`) ?? 0) + count * INTERVAL_MS * 1000);
      }
      await balance.adjust();
    }
  };
  const readsIn = async (intervals: number) => {
    const before = reads;
    await pass(intervals);
    return reads - before;
  };
  return { pass, shares, readsIn };
}

describe("the balance of CPU time", () => {
  it("takes shares from a sandbox that burns CPUs, and leaves those of its neighbours", async () => {
    const { pass, shares } = host({ "sandpiper-burner": 2, "sandpiper-quiet": 0.1 });
    await pass(8);
    expect(shares.get("/sandpiper-burner")).toBe(64);
    expect(shares.get("/sandpiper-quiet")).toBe(1024);
    expect(shares.has("/system.slice")).toBe(false);
  });

  it("gives shares back to a sandbox that has stopped burning", async () => {
    const cpus = { "sandpiper-a": 2, "sandpiper-b": 2 };
    const { pass, shares } = host(cpus);
    await pass(8);
    cpus["sandpiper-a"] = 0;
    await pass(8);
    expect([shares.get("/sandpiper-a"), shares.get("/sandpiper-b")]).toEqual([1024, 64]);
  });

  it("lets any number of burning sandboxes together weigh less than one process of the node", async () => {
    const burners = Object.fromEntries(Array.from({ length: 200 }, (_, k) => [`sandpiper-${k}`, 2]));
    const { pass, shares } = host(burners);
    await pass(8);
    expect([...shares.values()].reduce((sum, one) => sum + one, 0)).toBeLessThan(NODE_SHARES);
  });

  it("reads one file at a time while the machine is idle", async () => {
    const { pass, readsIn } = host({ "sandpiper-a": 0.01, "sandpiper-b": 0.01 });
    await pass(2);
    expect(await readsIn(10)).toBe(10);
  });
});
