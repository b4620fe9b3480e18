/**
 * What a provider needs of the host's cgroups; a cgroup is named by its path below the root, like `/sandpiper/<id>`.
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
  /** Removes a cgroup without processes; false when it still has processes or cgroups below it. */
  remove(path: string): Promise<boolean>;
}
