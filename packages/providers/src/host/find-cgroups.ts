import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Cgroups } from "./cgroups.ts";
import { CgroupsV1 } from "./cgroups-v1.ts";
import { CgroupsV2 } from "./cgroups-v2.ts";

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
