import { describe, expect, it } from "vitest";
import { probeGvisor } from "./probe.ts";

describe("probing for gVisor", () => {
  it("tells release, platform and cgroups of a host that has it", async () => {
    expect(await probeGvisor({ stateDirectory: "/nonexistent" })).toEqual({
      available: true,
      detail: expect.stringMatching(/^runsc \d{8}\.\d+, systrap, cgroup version [12]$/),
    });
  });

  it("tells what is missing, and what to do about it", async () => {
    expect(await probeGvisor({ stateDirectory: "/nonexistent", runsc: "/no/such/runsc" })).toEqual({
      available: false,
      reason: expect.stringContaining("/no/such/runsc"),
      hint: expect.stringContaining("SANDPIPER_RUNSC"),
    });
  });

  it("refuses a state directory that runsc could not be told of", async () => {
    expect(await probeGvisor({ stateDirectory: "/a,b" })).toMatchObject({ reason: expect.stringContaining("comma") });
  });
});
