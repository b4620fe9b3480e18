import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@sandpiper/core";
import type { Cgroups } from "./cgroups.ts";
import { clampShares, sharesOf } from "./cpu-shares.ts";
import { INSTANCE_PREFIX } from "./instance-cgroup.ts";

/** A sandbox that uses this much of a CPU, for example for commands now and then, has its whole share. */
const FREE_CPUS = 0.25;
/** What remains of the share of one sandbox that burns CPUs. */
const SMALLEST_PART = 1 / 16;
/** What all of them together may have: half of what one process of the node has. */
const ALL_BURNING_SHARES = 512;
/** While the whole machine uses less, there is enough for everyone. */
const BUSY_CPUS = 0.5;
/** Sandboxes per turn of the event loop, about 1 ms. */
const PER_TURN = 64;

interface Usage {
  readonly baseShares: number;
  usedUs: number;
  /** Averaged over the last few intervals. */
  cpus: number;
  shares: number;
}

/**
 * Gives the node, and sandboxes that have used little CPU time, precedence over sandboxes that burn it. The kernel's
 * scheduler alone divides time fairly, but lets a short command wait for turns of many busy processes.
 */
export class CpuBalance {
  readonly #cgroups: Cgroups;
  readonly #clock: Clock;
  #usages = new Map<string, Usage>();
  #measuredAtMs: number;
  #machineUs = 0;

  constructor(cgroups: Cgroups, clock: Clock) {
    this.#cgroups = cgroups;
    this.#clock = clock;
    this.#measuredAtMs = clock.monotonicMs();
  }

  /** Reads what each sandbox has used since the last call, and sets its shares. */
  async adjust(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const intervalUs = (nowMs - this.#measuredAtMs) * 1000;
    const machineUs = this.#cgroups.cpuUsageUs("/");
    if (machineUs === undefined || intervalUs <= 0) return;
    const isBusy = (machineUs - this.#machineUs) / intervalUs > BUSY_CPUS;
    this.#machineUs = machineUs;
    this.#measuredAtMs = nowMs;
    const isLevel = [...this.#usages.values()].every(({ shares, baseShares }) => shares === baseShares);
    if (!isBusy && isLevel) {
      // The next time cannot tell when its CPU time was used.
      this.#usages.clear();
      return;
    }
    await this.#adjustAll(intervalUs);
  }

  async #adjustAll(intervalUs: number): Promise<void> {
    const names = this.#cgroups.names().filter((name) => name.startsWith(INSTANCE_PREFIX));
    const usages = new Map<string, Usage>();
    for (const [index, name] of names.entries()) {
      if (index % PER_TURN === PER_TURN - 1) await nextTurn();
      const usage = this.#measure(`/${name}`, this.#usages.get(name), intervalUs);
      if (usage !== undefined) usages.set(name, usage);
    }
    this.#usages = usages;
    const burning = [...usages.values()].map(burningShares).reduce((sum, shares) => sum + shares, 0);
    const fitting = Math.min(1, ALL_BURNING_SHARES / burning);
    for (const [name, usage] of usages) {
      const shares = clampShares(burningShares(usage) * fitting || usage.baseShares);
      if (shares !== usage.shares) this.#cgroups.setCpuShares(`/${name}`, shares);
      usage.shares = shares;
    }
  }

  #measure(path: string, before: Usage | undefined, intervalUs: number): Usage | undefined {
    const usedUs = this.#cgroups.cpuUsageUs(path);
    if (usedUs === undefined) return undefined;
    if (before === undefined) {
      const baseShares = sharesOf(this.#cgroups.cpuLimit(path) ?? 1);
      // An earlier node may have left it with fewer.
      this.#cgroups.setCpuShares(path, baseShares);
      return { baseShares, usedUs, cpus: 0, shares: baseShares };
    }
    return { ...before, usedUs, cpus: (before.cpus + (usedUs - before.usedUs) / intervalUs) / 2 };
  }
}

/** Zero for a sandbox that does not burn. Falls with the square, so that few of them do not outweigh a short command. */
function burningShares({ cpus, baseShares }: Usage): number {
  return cpus <= FREE_CPUS ? 0 : baseShares * Math.max(SMALLEST_PART, (FREE_CPUS / cpus) ** 2);
}
