import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { type FreeResources, freeResources } from "./free-resources.ts";
import { HostReserve } from "./host-reserve.ts";

function host(files: Readonly<Record<string, string>>): string {
  const root = new ScratchHome().path;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

const machine = {
  "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n",
  "proc/loadavg": "0.5 0.4 0.3 2/1000 4242\n",
  "proc/sys/kernel/pid_max": "32768\n",
  "proc/sys/kernel/threads-max": "60000\n",
};

describe("what a host has free", () => {
  it("is its available memory, and the process ids that no thread uses", () => {
    expect(freeResources([], host(machine))).toEqual({ memory: { left: 4096 }, pids: { left: 31_768 } });
  });

  it("is at most what the node's cgroup allows, where page cache counts as free", () => {
    const own = "sys/fs/cgroup/system.slice/node.service";
    const root = host({
      ...machine,
      "proc/self/cgroup": "0::/system.slice/node.service\n",
      [`${own}/memory.max`]: "1073741824\n",
      [`${own}/memory.current`]: "536870912\n",
      [`${own}/memory.stat`]: "anon 1\ninactive_file 104857600\nactive_file 0\n",
      [`${own}/pids.max`]: "500\n",
      [`${own}/pids.current`]: "100\n",
    });
    expect(freeResources([], root)).toEqual({ memory: { left: 612 }, pids: { left: 400 } });
  });

  it("is unknown where the host reports nothing", () => {
    expect(freeResources(["/does/not/exist"], host({}))).toEqual({});
  });
});

describe("the reserve of a host", () => {
  const reserve = { diskMib: 100, memoryMib: 100, pids: 100 };
  const plenty = { disk: { left: 1000, where: "/home" }, memory: { left: 1000 }, pids: { left: 1000 } };

  function reserveOf(free: () => FreeResources, clock = new FakeClock()): HostReserve {
    return new HostReserve({ reserve, paths: [], clock, measure: free });
  }

  it.each(["disk", "memory", "pids"] as const)("refuses new work with too little free: %s", (resource) => {
    const host = reserveOf(() => ({ ...plenty, [resource]: { left: 99 } }));
    expect(() => host.require("create the sandbox")).toThrow(
      expect.objectContaining({
        code: "resource_exhausted",
        reason: "reserve_reached",
        details: expect.objectContaining({ resource, free: 99, reserve: 100 }),
        hint: expect.stringContaining("retry"),
      }),
    );
    expect(host.lowOn()).toEqual([resource]);
  });

  it("counts the size of an upload, and checks only what the work needs", () => {
    const host = reserveOf(() => ({ ...plenty, memory: { left: 1 } }));
    host.require("write the file", ["disk"], { diskBytes: 900 * 1024 * 1024 });
    expect(() => host.require("write the file", ["disk"], { diskBytes: 901 * 1024 * 1024 })).toThrow(/needs 901 MiB/);
  });

  it("allows new work again as soon as enough is free", async () => {
    const clock = new FakeClock();
    let free: FreeResources = { pids: { left: 0 } };
    const host = reserveOf(() => free, clock);
    expect(() => host.require("create the sandbox")).toThrow(/0 free pids/);
    free = plenty;
    await clock.advance(1000);
    host.require("create the sandbox");
    expect(host.lowOn()).toEqual([]);
  });

  it("ignores what the host does not report", () => {
    reserveOf(() => ({})).require("create the sandbox");
  });
});
