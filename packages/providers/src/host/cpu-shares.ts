/** The smallest and largest values that the kernel accepts. */
const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
/** cgroup v2's range is 1 to 10,000. */
const MAX_WEIGHT = 10_000;

/** The kernel's default for one group or process. A sandbox with fewer CPUs is held back by its limit, not by its shares. */
const DEFAULT_SHARES = 1024;
const SHARES_PER_CPU = 512;

/** A sandbox's part of the CPU time when there is too little for all. */
export function sharesOf(vcpuCount: number): number {
  return clampShares(Math.max(SHARES_PER_CPU * vcpuCount, DEFAULT_SHARES));
}

export function clampShares(shares: number): number {
  return Math.min(Math.max(Math.round(shares), MIN_SHARES), MAX_SHARES);
}

/** The same in cgroup v2, as container runtimes convert it. */
export function weightOfShares(shares: number): number {
  return 1 + Math.floor(((clampShares(shares) - MIN_SHARES) * (MAX_WEIGHT - 1)) / (MAX_SHARES - MIN_SHARES));
}
