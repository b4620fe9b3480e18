import { Sandbox } from "@sandpiper/core";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mockCapabilities } from "./capabilities.ts";
import { MockProvider } from "./provider.ts";

describeProvider("mock", () => new MockProvider(), {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities: mockCapabilities,
  crash: async (provider, id) => (provider as MockProvider).instance(id).crash(),
  leftovers: async (provider, id) => (provider as MockProvider).leftovers(id),
  async orphan(config) {
    const first = new MockProvider();
    const { id } = await Sandbox.create(first, config);
    return { provider: first.die(), id };
  },
});
