import { appendFile, readFile, stat } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { machineProcesses, readCgroup } from "../host/testing/machine-traces.ts";
import { shared } from "../host/testing/shared.ts";
import { createQemuFixture } from "./testing/fixture.ts";

const fixture = await shared(createQemuFixture());

describe("a QEMU machine", () => {
  it("has the configured memory, processors and disk, and no more", async () => {
    await using sandbox = await fixture.create({ vcpuCount: 1 });
    const memory = await sandbox.exec("awk '/MemTotal/ { print $2 }' /proc/meminfo; nproc");
    const [total = "", processors] = memory.stdout.split("\n");
    expect(Number(total)).toBeGreaterThan(128 * 1024);
    expect(Number(total)).toBeLessThanOrEqual(192 * 1024);
    expect(processors).toBe("1");
    const full = await sandbox.exec("head -c 200000000 /dev/zero > big; wc -c < big", { user: "root" });
    expect(full.stderr).toContain("No space left");
    expect(Number(full.stdout)).toBeLessThan(64 * 2 ** 20);
    await sandbox.exec("rm big", { user: "root" });
    expect((await sandbox.exec("echo still here > small; cat small")).stdout).toBe("still here\n");
  });

  it("kills a process that uses too much memory, and keeps the others", async () => {
    await using sandbox = await fixture.create();
    const result = await sandbox.exec(["tail", "/dev/zero"]);
    expect(result.exitCode).toBe(137);
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
  });

  it("limits the number of processes", async () => {
    await using sandbox = await fixture.create({ maxProcesses: 24 });
    const result = await sandbox.exec("for i in $(seq 60); do sleep 5 & done; wait", { timeoutMs: 20_000 });
    expect(result.stderr).toMatch(/fork/i);
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
  });

  it("is limited as a whole by its cgroup", async () => {
    await using sandbox = await fixture.create({ vcpuCount: 0.5 });
    const read = (...names: readonly string[]) => readCgroup(sandbox.id, ...names);
    expect(await read("cpu.cfs_quota_us", "cpu.max")).toMatch(/^50000\b/);
    expect(Number(await read("memory.limit_in_bytes", "memory.max"))).toBe((192 + 64 + 96) * 2 ** 20);
    expect(await read("pids.max")).toMatch(/^\d+$/);
    expect(Number(await read("pids.max"))).toBeLessThan(128);
  });
});

describe("the console of a QEMU machine", () => {
  it("is trimmed while the guest floods it, so that no guest fills the host's disk with it", async () => {
    await using sandbox = await fixture.create();
    const [pid] = await machineProcesses(sandbox.id);
    const path = `/proc/${pid}/root/console.log`;
    const flood = ["/bin/sh", "-c", "while :; do cat /bin/sh; done > /dev/ttyS0"];
    await sandbox.start(flood, { user: "root" });
    const { size: written } = await stat(path);
    await expect.poll(async () => (await stat(path)).size).toBeGreaterThan(written + 10_000);
    // The emulated port is slow, so this stands for most of what the guest wrote.
    await appendFile(path, Buffer.alloc(2 ** 21, "x"));
    await expect.poll(async () => (await stat(path)).blocks * 512).toBeLessThan(2 ** 20);
    // QEMU does not append, so the size counts all that the guest wrote.
    const { size: trimmedAt } = await stat(path);
    await expect.poll(async () => (await stat(path)).size).toBeGreaterThan(trimmedAt);
    expect((await stat(path)).blocks * 512).toBeLessThan(2 ** 20);
    expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
  });
});

describe("the QEMU process", () => {
  it("runs as its own user, under a seccomp filter, and sees only its own files", async () => {
    await using one = await fixture.create();
    await using other = await fixture.create();
    const uids = await Promise.all(
      [one, other].map(async ({ id }) => {
        const [pid = 0] = await machineProcesses(id);
        const status = await readFile(`/proc/${pid}/status`, "utf8");
        expect(status).toMatch(/^Seccomp:\s+2$/m);
        expect(status).toMatch(/^CapEff:\s+0+$/m);
        expect(await readFile(`/proc/${pid}/root/instance.txt`, "utf8")).toContain("hostname");
        return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
      }),
    );
    expect(uids.every((uid) => uid >= 0x6000_0000)).toBe(true);
    expect(new Set(uids).size).toBe(2);
  });

  it("gives its guest no network device", async () => {
    await using sandbox = await fixture.create();
    expect((await sandbox.exec("ls /sys/class/net")).stdout).toBe("lo\n");
  });
});
