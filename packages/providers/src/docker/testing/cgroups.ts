import { existsSync } from "node:fs";
import { readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const ROUNDS = 300;
const ROUND_MS = 20;
const CGROUPS = "/sys/fs/cgroup";
/** Which file says so in version 1 and in version 2. */
const THAWED = { "freezer.state": "THAWED", "cgroup.freeze": "0" };

/** One for each hierarchy of version 1, or the one of version 2. */
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

/** What a paused container stands still in ends only when it goes on. */
export async function thawCgroups(cgroups: readonly string[]): Promise<void> {
  const paths = await Promise.all(cgroups.map(cgroupTree));
  for (const path of paths.flat()) {
    for (const [name, state] of Object.entries(THAWED)) {
      await writeFile(join(path, name), state, { flag: "r+" }).catch(() => undefined);
    }
  }
}

/** Once what runs in it has ended. */
export async function removeCgroup(cgroup: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const path of (await cgroupTree(cgroup)).reverse()) await rmdir(path).catch(() => undefined);
    if (!existsSync(cgroup)) return;
    await sleep(ROUND_MS);
  }
  throw new Error(`the cgroup ${cgroup} cannot be removed`);
}
