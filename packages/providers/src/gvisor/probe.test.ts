import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runProgram } from "../host/run-program.ts";
import { freshDirectory } from "../host/testing/shared.ts";
import { GvisorProvider } from "./provider.ts";

const directory = freshDirectory("probe");

describe("the gVisor probe", () => {
  it("reports release, platform and cgroup version", async () => {
    expect(await new GvisorProvider({ stateDirectory: "/nonexistent" }).probe()).toEqual({
      available: true,
      detail: expect.stringMatching(/^runsc \d{8}\.\d+, systrap, cgroup version [12]$/),
    });
  });

  it("reports what is missing and the remedy", async () => {
    expect(await new GvisorProvider({ stateDirectory: "/nonexistent", runsc: "/no/such/runsc" }).probe()).toEqual({
      available: false,
      reason: expect.stringContaining("/no/such/runsc"),
      hint: expect.stringContaining("SANDPIPER_RUNSC"),
    });
  });

  it("refuses a state directory on overlayfs, whose owners cannot be mapped", async () => {
    const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((name) => join(directory, name));
    for (const path of [lower, upper, work, merged]) await mkdir(String(path));
    const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    await runProgram(["/bin/mount", "-t", "overlay", "overlay", "-o", layers, String(merged)]);
    try {
      expect(await new GvisorProvider({ stateDirectory: `${merged}/new/home` }).probe()).toMatchObject({
        available: false,
        reason: expect.stringContaining("overlayfs"),
        hint: expect.stringContaining("SANDPIPER_HOME"),
      });
    } finally {
      await runProgram(["/bin/umount", String(merged)]);
    }
  });

  it("refuses a state directory that runsc does not support", async () => {
    expect(await new GvisorProvider({ stateDirectory: "/a,b" }).probe()).toMatchObject({
      reason: expect.stringContaining("comma"),
    });
  });
});
