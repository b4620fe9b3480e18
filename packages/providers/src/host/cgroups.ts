/** Half of the kernel's default, so that the node's database comes first. */
export const INSTANCE_IO_WEIGHT = 50;

/**
 * What a provider needs of the host's cgroups; a cgroup is named by its path below the root, like `/sandpiper-<id>`.
 * Synchronous calls are used often and touch only the kernel's memory.
 */
export interface Cgroups {
  readonly version: 1 | 2;
  /** Some kernels do not account swap, and then it cannot be limited. */
  readonly canLimitSwap: boolean;
  /** Process ids in the cgroup; none when it does not exist. */
  processes(path: string): Promise<number[]>;
  kill(path: string): Promise<void>;
  /** Raises the memory limit of a cgroup; without swap, if swap can be limited. */
  raiseMemory(path: string, bytes: number): Promise<void>;
  /** The number of OOM kills in it. */
  oomKills(path: string): Promise<number>;
  /** The names of the cgroups in the root. */
  names(): string[];
  /** CPU time that its processes have used; undefined when the cgroup or the kernel's count does not exist. */
  cpuUsageUs(path: string): number | undefined;
  /** Its CPU limit, in CPUs; undefined without one. */
  cpuLimit(path: string): number | undefined;
  /** Accepts a cgroup that has been removed. */
  setCpuShares(path: string, shares: number): void;
  /** Has no effect where the kernel has no such weights, or the disk's scheduler ignores them. */
  setIoWeight(path: string, weight: number): void;
  /** Removes a cgroup without processes; false when it still has processes or cgroups below it. */
  remove(path: string): Promise<boolean>;
}
