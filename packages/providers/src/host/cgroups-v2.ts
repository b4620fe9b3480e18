import { existsSync, mkdtempSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
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
import { weightOfShares } from "./cpu-shares.ts";

/** cgroup v2: one hierarchy for all controllers. */
export class CgroupsV2 implements Cgroups {
  readonly version = 2;
  readonly canLimitSwap: boolean;
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
    // The root cgroup has no limits, so the check uses the cgroups below it.
    const cgroups = [".", ...readdirSync(root)];
    this.canLimitSwap = cgroups.some((name) => countsSwap(join(root, name))) || newCgroupCountsSwap(root);
  }

  processes(path: string): Promise<number[]> {
    return readProcesses(join(this.#root, path));
  }

  async kill(path: string): Promise<void> {
    // "r+" never creates the file. Kernels before 5.14 lack it, and then each process is killed separately.
    const asOne = await writeFile(join(this.#root, path, "cgroup.kill"), "1", { flag: "r+" }).catch(() => false);
    if (asOne === false) killAll(await this.processes(path));
  }

  async raiseMemory(path: string, bytes: number): Promise<void> {
    await writeFile(join(this.#root, path, "memory.max"), String(bytes), { flag: "r+" });
  }

  async oomKills(path: string): Promise<number> {
    const file = join(this.#root, path, "memory.events");
    return readCounter(await readFile(file, "utf8").catch(() => ""), "oom_kill");
  }

  names(): string[] {
    return directoriesIn(this.#root);
  }

  cpuUsageUs(path: string): number | undefined {
    const text = readIfPresent(join(this.#root, path, "cpu.stat"));
    return text === undefined ? undefined : readCounter(text, "usage_usec");
  }

  cpuLimit(path: string): number | undefined {
    const [quota, period] = readIfPresent(join(this.#root, path, "cpu.max"))?.split(" ") ?? [];
    return cpusOf(quota, period);
  }

  setCpuShares(path: string, shares: number): void {
    writeIfPresent([join(this.#root, path, "cpu.weight")], String(weightOfShares(shares)));
  }

  setIoWeight(path: string, weight: number): void {
    const files = ["io.bfq.weight", "io.weight"].map((name) => join(this.#root, path, name));
    writeIfPresent(files, String(weight));
  }

  remove(path: string): Promise<boolean> {
    return removeCgroup(join(this.#root, path));
  }
}

function countsSwap(directory: string): boolean {
  return existsSync(join(directory, "memory.swap.max"));
}

/** Where no cgroup limits memory yet, only a new cgroup shows whether swap can be limited. */
function newCgroupCountsSwap(root: string): boolean {
  try {
    writeFileSync(join(root, "cgroup.subtree_control"), "+memory", { flag: "r+" });
    const directory = mkdtempSync(join(root, "sandpiper-swap-"));
    try {
      return countsSwap(directory);
    } finally {
      rmdirSync(directory);
    }
  } catch {
    return false;
  }
}
