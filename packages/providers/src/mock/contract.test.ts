import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mockCapabilities } from "./capabilities.ts";
import { MockProvider } from "./provider.ts";

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "sandpiper-mock-"));
});
afterAll(() => rm(scratch, { recursive: true }));

describe.each(["memory", "filesystem"] as const)("with checkpoints of %s", (checkpoint) => {
  describeProvider("mock", () => new MockProvider({ checkpoint }), {
    framework: { describe, it, beforeAll, afterAll, expect },
    capabilities: { ...mockCapabilities, checkpoint },
    crash: async (provider, id) => (provider as MockProvider).instance(id).crash(),
    leftovers: async (provider, id) => (provider as MockProvider).leftovers(id),
    makeDirectory: () => mkdtemp(join(scratch, "checkpoint-")),
    async orphan(config) {
      const first = new MockProvider();
      const { id } = await Sandbox.create(first, config);
      return { provider: first.die(), id };
    },
  });
});
