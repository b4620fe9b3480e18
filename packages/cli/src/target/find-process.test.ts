import type { ProcessResource, Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { newestProcess, pickProcess } from "./find-process.ts";

function process_(id: string, pid: number, isRunning: boolean, startedAt = "2026-01-01T00:00:00.000Z") {
  return { id, pid, isRunning, startedAt } as ProcessResource;
}

describe("a process", () => {
  const known = [process_("aaaa", 7, false), process_("bbbb", 7, true), process_("7ccc", 8, true)];

  it("is found by its PID while it runs, by its ID and by the beginning of its ID", () => {
    expect(pickProcess("7", known).id).toBe("bbbb");
    expect(pickProcess("aa", known).id).toBe("aaaa");
    expect(pickProcess("7c", known).id).toBe("7ccc");
    expect(() => pickProcess("9", known)).toThrow('process "9" not found');
  });

  it("that was started last is the newest", () => {
    const sandbox = { id: "0123456789" } as Sandbox;
    const later = process_("later", 2, false, "2026-01-02T00:00:00.000Z");
    expect(newestProcess(sandbox, [later, ...known]).id).toBe("later");
    expect(() => newestProcess(sandbox, [])).toThrow("sandbox 0123456789 has no processes");
  });
});
