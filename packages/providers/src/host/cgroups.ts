import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CgroupsV1 } from "./cgroups-v1.ts";
import { CgroupsV2 } from "./cgroups-v2.ts";

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
  /** The number of OOM kills in it. */
  oomKills(path: string): Promise<number>;
  /** Removes a cgroup without processes; false when it still has processes or cgroups below it. */
  remove(path: string): Promise<boolean>;
}

const NEEDED = ["cpu", "memory", "pids"];
/** gVisor refuses a host with cgroup v2 that lacks one of these, although no limit uses the other two. */
const NEEDED_V2 = ["cpuset", "cpu", "io", "memory", "pids"];

/** Undefined when this host has no cgroups that can limit a sandbox. */
export function findCgroups(root = "/sys/fs/cgroup"): Cgroups | undefined {
  if (NEEDED.every((name) => existsSync(join(root, name, "cgroup.procs")))) {
    const hierarchies = readdirSync(root)
      .map((name) => join(root, name))
      .filter((path) => existsSync(join(path, "cgroup.procs")));
    return new CgroupsV1(root, hierarchies);
  }
  const controllers = readControllers(root);
  return NEEDED_V2.every((name) => controllers.includes(name)) ? new CgroupsV2(root) : undefined;
}

function readControllers(root: string): string[] {
  const path = join(root, "cgroup.controllers");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split(" ") : [];
}
