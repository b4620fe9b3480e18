import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@sandpiper/core";
import type { Cgroups } from "./cgroups.ts";
import { clampShares, sharesOf } from "./cpu-shares.ts";
import { INSTANCE_PREFIX } from "./instance-cgroup.ts";

/** A sandbox that uses this much of a CPU, for example for commands now and then, has its whole share. */
const FREE_CPUS = 0.25;
/** What remains of the share of a sandbox that burns CPUs: 64 of two CPUs each weigh as much as one process of the node. */
const SMALLEST_PART = 1 / 64;
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
      const usage = this.#adjustOne(`/${name}`, this.#usages.get(name), intervalUs);
      if (usage !== undefined) usages.set(name, usage);
    }
    this.#usages = usages;
  }

  #adjustOne(path: string, before: Usage | undefined, intervalUs: number): Usage | undefined {
    const usedUs = this.#cgroups.cpuUsageUs(path);
    if (usedUs === undefined) return undefined;
    if (before === undefined) {
      const baseShares = sharesOf(this.#cgroups.cpuLimit(path) ?? 1);
      // An earlier node may have left it with fewer.
      this.#cgroups.setCpuShares(path, baseShares);
      return { baseShares, usedUs, cpus: 0, shares: baseShares };
    }
    const cpus = (before.cpus + (usedUs - before.usedUs) / intervalUs) / 2;
    const shares = clampShares(before.baseShares * partOf(cpus));
    if (shares !== before.shares) this.#cgroups.setCpuShares(path, shares);
    return { ...before, usedUs, cpus, shares };
  }
}

/** Falls with the square, so that a few burning sandboxes do not outweigh a short command. */
function partOf(cpus: number): number {
  return Math.min(1, Math.max(SMALLEST_PART, (FREE_CPUS / cpus) ** 2));
}
