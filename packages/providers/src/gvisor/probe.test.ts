import { describe, expect, it } from "vitest";
import { probeGvisor } from "./probe.ts";

describe("the gVisor probe", () => {
  it("reports release, platform and cgroup version", async () => {
    expect(await probeGvisor({ stateDirectory: "/nonexistent" })).toEqual({
      available: true,
      detail: expect.stringMatching(/^runsc \d{8}\.\d+, systrap, cgroup version [12]$/),
    });
  });

  it("reports what is missing and the remedy", async () => {
    expect(await probeGvisor({ stateDirectory: "/nonexistent", runsc: "/no/such/runsc" })).toEqual({
      available: false,
      reason: expect.stringContaining("/no/such/runsc"),
      hint: expect.stringContaining("SANDPIPER_RUNSC"),
    });
  });

  it("refuses a state directory that runsc does not support", async () => {
    expect(await probeGvisor({ stateDirectory: "/a,b" })).toMatchObject({ reason: expect.stringContaining("comma") });
  });
});
