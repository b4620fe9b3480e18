import { describe, expect, it } from "vitest";
import { GvisorProvider } from "./provider.ts";

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

  it("refuses a state directory that runsc does not support", async () => {
    expect(await new GvisorProvider({ stateDirectory: "/a,b" }).probe()).toMatchObject({
      reason: expect.stringContaining("comma"),
    });
  });
});
