import { type Sandbox, systemClock } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { CpuBalance } from "../host/cpu-balance.ts";
import { findCgroups } from "../host/find-cgroups.ts";
import { readCgroup } from "../host/testing/machine-traces.ts";
import { shared } from "../host/testing/shared.ts";
import { createGvisorFixture } from "./testing/fixture.ts";

const fixture = await shared(createGvisorFixture());

const python = (code: string) => ["python3", "-c", code];
/** Writes to the allocated memory, so that it is really used. */
const hog = (mib: number) => python(`x = b"y" * (${mib} << 20); print(len(x))`);

describe("the memory limit", () => {
  it("does not affect programs that stay within it", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const { stdout } = await sandbox.exec(hog(64));
    expect(stdout).toBe(`${64 << 20}\n`);
  });

  it("is the machine's memory for programs inside", async () => {
    await using sandbox = await fixture.create({ memoryMib: 512 });
    const { stdout } = await sandbox.exec("awk '/MemTotal/ { print $2 }' /proc/meminfo");
    expect(Number(stdout)).toBe(512 * 1024);
  });

  it("does not count files", async () => {
    await using sandbox = await fixture.create({ memoryMib: 64, diskMib: 256 });
    const { stdout } = await sandbox.exec("head -c 200000000 /dev/zero > big && stat -c %s big");
    expect(stdout).toBe("200000000\n");
  });
});

describe("the CPU limit", () => {
  it("slows a busy sandbox down", async () => {
    await using sandbox = await fixture.create({ vcpuCount: 0.2 });
    const before = await timesThrottled(sandbox);
    await sandbox.exec(python("sum(i * i for i in range(2_000_000))"));
    expect(await timesThrottled(sandbox)).toBeGreaterThan(before);
  });
});

describe("the CPU share", () => {
  it("of a sandbox that burns CPU time falls below those of its neighbours and of the node", async () => {
    await using neighbour = await fixture.create({ vcpuCount: 2 });
    await using burner = await fixture.create({ vcpuCount: 2 });
    expect(await cpuShares(burner)).toBe(await cpuShares(neighbour));
    const burning = await burner.start("while :; do :; done & while :; do :; done");
    const cgroups = findCgroups();
    if (cgroups === undefined) throw new Error("this test needs cgroups");
    const balance = new CpuBalance(cgroups, systemClock);
    await expect
      .poll(() => balance.adjust().then(() => cpuShares(burner)), { interval: 100 })
      .toBeLessThan((await cpuShares(neighbour)) / 3);
    expect(await cpuShares(neighbour)).toBeLessThanOrEqual(await ownShares());
    await burning[Symbol.asyncDispose]();
    await expect
      .poll(() => balance.adjust().then(() => cpuShares(burner)), { interval: 100 })
      .toBe(await cpuShares(neighbour));
  });
});

describe("the process limit", () => {
  it.each(["user", "root"])("stops %s from starting more processes", async (user) => {
    await using sandbox = await fixture.create({ maxProcesses: 24 });
    const forkMany = python("import os\nfor i in range(60):\n  os.fork() or os.execvp('sleep', ['sleep', '60'])");
    const { exitCode, stderr } = await sandbox.exec(forkMany, { user });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/Resource temporarily unavailable/);
  });

  it("keeps the host, other sandboxes and the sandbox itself usable under a fork bomb", async () => {
    await using other = await fixture.create();
    await using sandbox = await fixture.create({ maxProcesses: 128, memoryMib: 256, vcpuCount: 1 });
    const bomb = await sandbox.start(["bash", "-c", ":(){ :|:& };:; sleep 600"], { user: "user" });
    await expect.poll(() => hostTasks(sandbox)).toBeGreaterThan(150);
    expect((await other.exec("echo other")).stdout).toBe("other\n");
    expect((await sandbox.exec("echo itself", { user: "root" })).stdout).toBe("itself\n");
    expect(await hostTasks(sandbox)).toBeLessThanOrEqual(128 * 4 + 256);
    await bomb[Symbol.asyncDispose]();
    await sandbox.destroy();
    expect(await hostTasks(sandbox)).toBe(0);
  });
});

describe("the disk limit", () => {
  it("applies to all directories together, with ENOSPC", async () => {
    await using sandbox = await fixture.create({ diskMib: 32 });
    const fill = (path: string) => sandbox.exec(`head -c 12000000 /dev/urandom > ${path}`, { user: "root" });
    expect((await fill("/tmp/a")).exitCode).toBe(0);
    expect((await fill("/var/b")).exitCode).toBe(0);
    const third = await fill("/home/user/c");
    expect(third.exitCode).not.toBe(0);
    expect(third.stderr).toContain("No space left on device");
    expect((await sandbox.exec("rm /tmp/a && head -c 8000000 /dev/urandom > /root/d", { user: "root" })).exitCode).toBe(
      0,
    );
  });

  it("also covers shared memory", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const { stderr } = await sandbox.exec("head -c 80000000 /dev/zero > /dev/shm/x");
    expect(stderr).toContain("No space left on device");
  });
});

/** The shares of a sandbox's cgroup; in version 2 its weight. */
async function cpuShares({ id }: Sandbox): Promise<number> {
  return Number(await readCgroup(id, "cpu.shares", "cpu.weight"));
}

/** What this program weighs, alone in its cgroup. */
async function ownShares(): Promise<number> {
  return findCgroups()?.version === 1 ? 1024 : 100;
}

async function timesThrottled({ id }: Sandbox): Promise<number> {
  return Number(/nr_throttled (\d+)/.exec(await readCgroup(id, "cpu.stat"))?.[1]);
}

async function hostTasks({ id }: Sandbox): Promise<number> {
  return Number(await readCgroup(id, "pids.current"));
}
