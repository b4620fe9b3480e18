import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider, type HostProgram, type HostProgramOptions } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useSandbox } from "../host/testing/host-program.ts";
import { sharedDirectory } from "../host/testing/shared.ts";
import { MockProvider } from "./provider.ts";

const scratch = sharedDirectory("mock");

describe.each(["memory", "filesystem"] as const)("the mock provider with checkpoints of %s", (checkpoint) => {
  const base = new MockProvider({ checkpoint });
  describeProvider("mock", () => base, {
    framework: { describe, it, beforeAll, afterAll, expect },
    capabilities: {
      isolation: "none",
      checkpoint,
      limits: { memory: false, cpu: false, processes: false, disk: false },
      supportsAdopt: true,
      supportsUsers: false,
      supportsContainers: false,
      network: "redirected",
    },
    crash: async (provider, id) => (provider as MockProvider).instance(id).crash(),
    leftovers: async (provider, id) => (provider as MockProvider).leftovers(id),
    network: { skipped: "programs of a mock open no connections" },
    makeDirectory: () => mkdtemp(join(scratch, "checkpoint-")),
    programs: { start: (options) => startProgram(base, options), next: () => base.sibling() },
  });
});

/** A program in memory: its provider dies with it. */
function startProgram(host: MockProvider, options: HostProgramOptions): HostProgram {
  const provider = host.sibling();
  const id = createSandboxId();
  const ready = useSandbox(provider, id, options);
  ready.catch(() => {});
  return { creating: async () => id, ready: () => ready, kill: async () => void provider.die() };
}
