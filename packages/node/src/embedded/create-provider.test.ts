import { describe, expect, it } from "vitest";
import { composedProviders, createManager, createProvider, defaultProvider } from "./create-provider.ts";

describe("createProvider", () => {
  it.each(composedProviders)("creates the provider %s with that name", (name) => {
    expect(createProvider(name, { home: "/tmp/sandpiper-nowhere" }).name).toBe(name);
  });

  it("isolates sandboxes by default", () => {
    expect(createProvider(defaultProvider).capabilities.isolation).not.toBe("none");
  });
});

describe("createManager", () => {
  it("passes the manager's options to the manager", () => {
    const manager = createManager({ provider: "local", home: "/tmp/sandpiper-nowhere", maxSandboxes: 7 });
    expect(manager.config.maxSandboxes).toBe(7);
    expect(() => createManager({ maxSandboxes: -1 })).toThrow("maxSandboxes");
  });
});
