import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { listProcesses, type ProcessEntry, processesNaming, proportionalMemory } from "./processes.ts";

function entry(id: number, parentId: number, commandLine: string): ProcessEntry {
  return { id, parentId, argv: commandLine.split(" "), commandLine, executable: "" };
}

describe("processes of an instance", () => {
  it("are those that name it and their descendants", () => {
    const all = [
      entry(1_000_001, 1, "runsc-sandbox boot b2"),
      entry(1_000_002, 1_000_001, "exe"),
      entry(1_000_003, 1_000_002, ""),
      entry(1_000_004, 1, "runsc-gofer gofer b2"),
      entry(1_000_005, 1, "runsc-sandbox boot a1"),
    ];
    const ids = processesNaming("b2", all).map((one) => one.id);
    expect(ids.sort()).toEqual([1_000_001, 1_000_002, 1_000_003, 1_000_004]);
  });

  it("are found with their parents, arguments and memory", async () => {
    const child = spawn("sleep", ["1000.25"]);
    try {
      await once(child, "spawn");
      const found = (await listProcesses()).filter((one) => one.id === child.pid);
      expect(found.map((one) => [one.parentId, one.argv])).toEqual([[process.pid, ["sleep", "1000.25"]]]);
      expect(await proportionalMemory(found)).toBeGreaterThan(0);
    } finally {
      child.kill();
      await once(child, "exit");
    }
  });

  it("have no memory figure without a process", async () => {
    await expect(proportionalMemory([])).rejects.toThrow("no memory figures");
  });
});
