import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { killAll, readCounter, readProcesses, removeCgroup } from "./cgroup-files.ts";
import type { Cgroups } from "./cgroups.ts";

/** cgroup v1: every controller has its own hierarchy, and a sandbox has a cgroup in each. */
export class CgroupsV1 implements Cgroups {
  readonly version = 1;
  readonly canLimitSwap: boolean;
  readonly #root: string;
  readonly #hierarchies: readonly string[];

  constructor(root: string, hierarchies: readonly string[]) {
    this.#root = root;
    this.#hierarchies = hierarchies;
    this.canLimitSwap = existsSync(join(root, "memory/memory.memsw.limit_in_bytes"));
  }

  /** From all hierarchies, because a process that was killed during its move may be in only some of them. */
  async processes(path: string): Promise<number[]> {
    const lists = await Promise.all(this.#hierarchies.map((hierarchy) => readProcesses(join(hierarchy, path))));
    return [...new Set(lists.flat())];
  }

  async kill(path: string): Promise<void> {
    killAll(await this.processes(path));
  }

  async raiseMemory(path: string, bytes: number): Promise<void> {
    const set = (name: string) => writeFile(join(this.#root, "memory", path, name), String(bytes), { flag: "r+" });
    // Memory cannot exceed the sum of memory and swap.
    if (this.canLimitSwap) await set("memory.memsw.limit_in_bytes");
    await set("memory.limit_in_bytes");
  }

  async oomKills(path: string): Promise<number> {
    const file = join(this.#root, "memory", path, "memory.oom_control");
    return readCounter(await readFile(file, "utf8").catch(() => ""), "oom_kill");
  }

  async remove(path: string): Promise<boolean> {
    const removed = await Promise.all(this.#hierarchies.map((hierarchy) => removeCgroup(join(hierarchy, path))));
    return removed.every(Boolean);
  }
}
