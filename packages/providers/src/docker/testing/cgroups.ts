import { existsSync } from "node:fs";
import { readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

const CGROUPS = "/sys/fs/cgroup";
/** The freezer files of cgroup v1 and v2. */
const THAWED = { "freezer.state": "THAWED", "cgroup.freeze": "0" };

/** One path for each hierarchy of cgroup v1, or one for v2. */
export async function cgroupsNamed(name: string): Promise<string[]> {
  const hierarchies = (await readdir(CGROUPS).catch(() => [])).map((hierarchy) => join(CGROUPS, hierarchy));
  return [CGROUPS, ...hierarchies].map((path) => join(path, name)).filter((path) => existsSync(path));
}

/** A cgroup and all below it, innermost last. */
export async function cgroupTree(cgroup: string): Promise<string[]> {
  const entries = await readdir(cgroup, { withFileTypes: true }).catch(() => []);
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => cgroupTree(join(cgroup, entry.name)));
  return [cgroup, ...(await Promise.all(children)).flat()];
}

/** The processes of a paused container end only after a thaw. */
export async function thawCgroups(cgroups: readonly string[]): Promise<void> {
  const paths = await Promise.all(cgroups.map(cgroupTree));
  for (const path of paths.flat()) {
    for (const [name, state] of Object.entries(THAWED)) {
      await writeFile(join(path, name), state, { flag: "r+" }).catch(() => undefined);
    }
  }
}

/** Waits until its processes have ended. */
export async function removeCgroup(cgroup: string): Promise<void> {
  await eventually(async () => {
    for (const path of (await cgroupTree(cgroup)).reverse()) await rmdir(path).catch(() => undefined);
    return !existsSync(cgroup);
  }, `cannot remove cgroup ${cgroup}`);
}
