import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  cpusOf,
  directoriesIn,
  killAll,
  readCounter,
  readIfPresent,
  readProcesses,
  removeCgroup,
  writeIfPresent,
} from "./cgroup-files.ts";
import type { Cgroups } from "./cgroups.ts";
import { clampShares } from "./cpu-shares.ts";

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

  names(): string[] {
    return directoriesIn(join(this.#root, "cpu"));
  }

  cpuUsageUs(path: string): number | undefined {
    const nanoseconds = readIfPresent(this.#file("cpuacct", path, "cpuacct.usage"));
    return nanoseconds === undefined ? undefined : Number(nanoseconds) / 1000;
  }

  cpuLimit(path: string): number | undefined {
    const [quota, period] = ["quota", "period"].map((name) =>
      readIfPresent(this.#file("cpu", path, `cpu.cfs_${name}_us`)),
    );
    return cpusOf(quota, period);
  }

  setCpuShares(path: string, shares: number): void {
    writeIfPresent([this.#file("cpu", path, "cpu.shares")], String(clampShares(shares)));
  }

  setIoWeight(path: string, weight: number): void {
    const files = ["blkio.bfq.weight", "blkio.weight"].map((name) => this.#file("blkio", path, name));
    writeIfPresent(files, String(weight));
  }

  async remove(path: string): Promise<boolean> {
    const removed = await Promise.all(this.#hierarchies.map((hierarchy) => removeCgroup(join(hierarchy, path))));
    return removed.every(Boolean);
  }
  #file(controller: string, path: string, name = "."): string {
    return join(this.#root, controller, path, name);
  }
}
