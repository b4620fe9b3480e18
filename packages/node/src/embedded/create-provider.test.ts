import { describe, expect, it } from "vitest";
import { composedProviders, createProvider, defaultProvider } from "./create-provider.ts";

describe("createProvider", () => {
  it.each(composedProviders)("creates the provider %s with that name", (name) => {
    expect(createProvider(name, { home: "/tmp/sandpiper-nowhere" }).name).toBe(name);
  });

  it("isolates sandboxes by default", () => {
    expect(createProvider(defaultProvider).capabilities.isolation).not.toBe("none");
  });
});
