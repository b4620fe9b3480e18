import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { endCgroup } from "./end-cgroup.ts";
import { findCgroups } from "./find-cgroups.ts";
import { freshDirectory } from "./testing/shared.ts";

const root = freshDirectory("cgroups");

async function write(path: string, text: string): Promise<void> {
  await mkdir(join(root, path, ".."), { recursive: true });
  await writeFile(join(root, path), text);
}

describe("a host with cgroup v1", () => {
  beforeEach(async () => {
    for (const name of ["cpu", "memory", "pids"]) await write(`${name}/cgroup.procs`, "");
    await mkdir(join(root, "unified"));
  });

  it("is detected, also beside an empty v2 hierarchy", async () => {
    await write("unified/cgroup.controllers", "");
    expect(findCgroups(root)?.version).toBe(1);
  });

  it("can limit swap where the kernel accounts it", async () => {
    expect(findCgroups(root)?.canLimitSwap).toBe(false);
    await write("memory/memory.memsw.limit_in_bytes", "");
    expect(findCgroups(root)?.canLimitSwap).toBe(true);
  });

  it("lists the processes of all hierarchies, each once", async () => {
    await write("cpu/box/cgroup.procs", "11\n12\n");
    await write("memory/box/cgroup.procs", "12\n13\n");
    const found = await findCgroups(root)?.processes("/box");
    expect(found?.toSorted()).toEqual([11, 12, 13]);
  });

  it("counts OOM kills, and zero without a cgroup", async () => {
    await write("memory/box/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    expect(await findCgroups(root)?.oomKills("/box")).toBe(2);
    expect(await findCgroups(root)?.oomKills("/other")).toBe(0);
  });

  it("raises the limit of memory and swap before that of memory", async () => {
    for (const name of ["memsw.", ""]) await write(`memory/box/memory.${name}limit_in_bytes`, "0");
    await write("memory/memory.memsw.limit_in_bytes", "");
    await findCgroups(root)?.raiseMemory("/box", 4096);
    for (const name of ["memsw.", ""]) {
      expect(await readFile(join(root, `memory/box/memory.${name}limit_in_bytes`), "utf8")).toBe("4096");
    }
  });

  it("sets CPU shares and I/O weights where the kernel has them, and reads CPU time and limits", async () => {
    await write("cpu/box/cpu.shares", "1024");
    await write("cpu/box/cpu.cfs_quota_us", "150000\n");
    await write("cpu/box/cpu.cfs_period_us", "100000\n");
    await write("cpuacct/box/cpuacct.usage", "5000000\n");
    await write("blkio/box/blkio.bfq.weight", "100");
    const cgroups = findCgroups(root);
    cgroups?.setCpuShares("/box", 77.6);
    cgroups?.setCpuShares("/gone", 77);
    cgroups?.setIoWeight("/box", 50);
    expect(await readFile(join(root, "cpu/box/cpu.shares"), "utf8")).toMatch(/^78/);
    expect(await readFile(join(root, "blkio/box/blkio.bfq.weight"), "utf8")).toMatch(/^50/);
    expect(await readdir(join(root, "cpu"))).not.toContain("gone");
    expect([cgroups?.cpuUsageUs("/box"), cgroups?.cpuLimit("/box"), cgroups?.names()]).toEqual([5000, 1.5, ["box"]]);
    expect([cgroups?.cpuUsageUs("/gone"), cgroups?.cpuLimit("/gone")]).toEqual([undefined, undefined]);
  });

  it("removes a cgroup from every hierarchy", async () => {
    await mkdir(join(root, "cpu/box"));
    await mkdir(join(root, "pids/box"));
    expect(await findCgroups(root)?.remove("/box")).toBe(true);
    expect(await readdir(join(root, "cpu"))).toEqual(["cgroup.procs"]);
  });
});

describe("a host with cgroup v2", () => {
  const controllers = "cpuset cpu io memory hugetlb pids\n";
  beforeEach(() => write("cgroup.controllers", controllers));

  it("is detected", () => {
    expect(findCgroups(root)?.version).toBe(2);
  });

  it.each(["cpuset", "cpu", "io", "memory", "pids"])("is unusable without the controller %s", async (name) => {
    await write("cgroup.controllers", controllers.replace(new RegExp(`\\b${name}\\b ?`), ""));
    expect(findCgroups(root)).toBeUndefined();
  });

  it("can limit swap where the kernel accounts it", async () => {
    expect(findCgroups(root)?.canLimitSwap).toBe(false);
    await write("system.slice/memory.swap.max", "max");
    expect(findCgroups(root)?.canLimitSwap).toBe(true);
  });

  it("checks swap with a new cgroup where no other limits memory, and removes it", async () => {
    await write("cgroup.subtree_control", "");
    // The kernel adds no files to a plain directory.
    expect(findCgroups(root)?.canLimitSwap).toBe(false);
    expect(await readFile(join(root, "cgroup.subtree_control"), "utf8")).toBe("+memory");
    expect((await readdir(root)).toSorted()).toEqual(["cgroup.controllers", "cgroup.subtree_control"]);
  });

  it("raises the limit of memory", async () => {
    await write("box/memory.max", "0");
    await findCgroups(root)?.raiseMemory("/box", 4096);
    expect(await readFile(join(root, "box/memory.max"), "utf8")).toBe("4096");
  });

  it("counts OOM kills", async () => {
    await write("box/memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 0\n");
    expect(await findCgroups(root)?.oomKills("/box")).toBe(1);
  });

  it("kills a whole cgroup where the kernel supports it", async () => {
    await write("box/cgroup.kill", "0");
    await findCgroups(root)?.kill("/box");
    expect(await readFile(join(root, "box/cgroup.kill"), "utf8")).toBe("1");
  });

  it("kills the processes one by one on older kernels", async () => {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    await write("box/cgroup.procs", `${child.pid}\n`);
    const ended = once(child, "exit");
    await findCgroups(root)?.kill("/box");
    expect((await ended)[1]).toBe("SIGKILL");
    expect(await readdir(join(root, "box"))).toEqual(["cgroup.procs"]);
  });
});

describe("the weights of a host with cgroup v2", () => {
  it("are set where the kernel has them", async () => {
    await write("cgroup.controllers", "cpuset cpu io memory pids\n");
    await write("box/cpu.weight", "100");
    await write("box/cpu.stat", "usage_usec 5000\nuser_usec 1\n");
    await write("box/cpu.max", "200000 100000\n");
    await write("box/io.bfq.weight", "100");
    const cgroups = findCgroups(root);
    cgroups?.setCpuShares("/box", 1024);
    cgroups?.setIoWeight("/box", 50);
    expect(await readFile(join(root, "box/cpu.weight"), "utf8")).toMatch(/^39/);
    expect(await readFile(join(root, "box/io.bfq.weight"), "utf8")).toMatch(/^50/);
    expect([cgroups?.cpuUsageUs("/box"), cgroups?.cpuLimit("/box"), cgroups?.names()]).toEqual([5000, 2, ["box"]]);
    await write("box/cpu.max", "max 100000\n");
    expect(cgroups?.cpuLimit("/box")).toBeUndefined();
  });
});

describe("a host without cgroups", () => {
  it("is detected", () => {
    expect(findCgroups(root)).toBeUndefined();
  });
});

describe("endCgroup", () => {
  it("kills until no process is left", async () => {
    const left = [3, 2, 1];
    const killed: string[] = [];
    await endCgroup(
      {
        processes: async () => left,
        kill: async (path) => void killed.push(`${path} ${left.pop()}`),
        remove: async () => left.length === 0,
      },
      "/box",
    );
    expect(killed).toEqual(["/box 1", "/box 2", "/box 3"]);
  });
});
