import { describe, expect, it } from "vitest";
import { requireRestorable } from "./requirements.ts";

const saved = { runtime: "runsc 1", platform: "systrap", cpuFeatures: "avx sse" };

describe("the requirements of a checkpoint", () => {
  it("allow additional CPU features", () => {
    expect(() => requireRestorable("it", saved, { ...saved, cpuFeatures: "avx avx2 sse" })).not.toThrow();
  });

  it("allow a node that knows newer agents, but no node that knows only older ones", () => {
    const byGeneration = (agentGeneration: string) => ({ ...saved, agentGeneration });
    expect(() => requireRestorable("it", byGeneration("1"), byGeneration("2"))).not.toThrow();
    expect(() => requireRestorable("it", byGeneration("2"), byGeneration("1"))).toThrow("agentGeneration is 1, not 2");
  });

  it.each([
    [{ ...saved, runtime: "runsc 2" }, "runtime is runsc 2, not runsc 1"],
    [{ ...saved, cpuFeatures: "sse" }, "cpuFeatures lack avx"],
    [{ runtime: "runsc 1", cpuFeatures: "avx sse" }, "platform is missing, not systrap"],
  ])("are named in the error if a node does not meet them: %j", (here, problem) => {
    expect(() => requireRestorable("checkpoint x", saved, here)).toThrow(
      expect.objectContaining({
        code: "failed_precondition",
        reason: "incompatible_node",
        message: `checkpoint x cannot be restored on this node: ${problem}`,
      }),
    );
  });

  it("name the missing release of gVisor and the command that adds it", () => {
    const here = { ...saved, runtime: "runsc 2" };
    expect(() => requireRestorable("it", saved, here)).toThrow(
      expect.objectContaining({
        hint: expect.stringMatching(/^keep runsc release 1 on this node with `sandpiper releases add/),
      }),
    );
  });
});
