import { describe, expect, it } from "vitest";
import { composedProviders, createManager, createProvider, defaultProvider } from "./create-provider.ts";

describe("the composition", () => {
  it.each(composedProviders)("makes the provider %s, which goes by that name", (name) => {
    expect(createProvider(name, { home: "/tmp/sandpiper-nowhere" }).name).toBe(name);
  });

  it("has a default that isolates", () => {
    expect(createProvider(defaultProvider).capabilities.isolation).not.toBe("none");
  });

  it("hands the rest of a manager's options to the manager", () => {
    const manager = createManager({ provider: "local", home: "/tmp/sandpiper-nowhere", maxSandboxes: 7 });
    expect(manager.config.maxSandboxes).toBe(7);
    expect(() => createManager({ maxSandboxes: -1 })).toThrow("maxSandboxes");
  });
});
