import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../end-cgroup.ts";
import { findCgroups } from "../find-cgroups.ts";

const ROOT = "/sys/fs/cgroup";
/** cgroup v1 has one hierarchy for each controller; these need no settings before they accept a process. */
const hierarchies = existsSync(join(ROOT, "cgroup.procs")) ? [ROOT] : [join(ROOT, "memory"), join(ROOT, "pids")];

export function boxPath(id: SandboxId): string {
  return `/sandpiper-${id}-test`;
}

/** A cgroup like that of an instance, with idle processes. */
export class CgroupBox {
  readonly id: SandboxId = createSandboxId();
  readonly directories = hierarchies.map((hierarchy) => join(hierarchy, boxPath(this.id)));
  /** What the lease guard kills to end it. */
  readonly targets = this.directories.map((cgroup) => ({ cgroup }));
  readonly #processes: ChildProcess[] = [];

  static async create(processes = 1): Promise<CgroupBox> {
    const box = new CgroupBox();
    for (const directory of box.directories) await mkdir(directory);
    for (let count = 0; count < processes; count++) await box.add();
    return box;
  }

  async add(): Promise<void> {
    const child = spawn("sleep", ["600"], { stdio: "ignore" });
    this.#processes.push(child);
    await once(child, "spawn");
    for (const directory of this.directories) await writeFile(join(directory, "cgroup.procs"), String(child.pid));
  }

  get running(): number {
    return this.#processes.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null).length;
  }

  async remove(): Promise<void> {
    const cgroups = findCgroups();
    if (cgroups === undefined) throw new Error("this host has no cgroups");
    await endCgroup(cgroups, boxPath(this.id));
  }
}
