import type { Provider } from "@sandpiper/core";
import { completeNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { newSandbox, type SandboxDefaults } from "./new-sandbox.ts";

const provider = (network: "redirected" | "host") =>
  ({ name: "local", capabilities: { network, supportsContainers: true } }) as unknown as Provider;
const defaults = {
  ...{ provider: "local", image: "host", memoryMib: 256, vcpuCount: 1, diskMib: 64, maxProcesses: 64 },
} as unknown as SandboxDefaults;
const open = completeNetwork("open");
const make = (body: Parameters<typeof newSandbox>[0], network: "redirected" | "host" = "redirected") =>
  newSandbox(body, { defaults, providers: new Map([["local", provider(network)]]), network: open });

const use = { name: "openai", env: null, placeholder: "sandpiper-secret-0" };

it("secrets are refused where connections of a sandbox would bypass the node", () => {
  const make = (network: "redirected" | "host", container?: { network: string }) =>
    newSandbox(
      { container },
      { defaults, providers: new Map([["local", provider(network)]]), network: open, secrets: [use] },
    );
  expect(() => make("host")).toThrow(
    "secrets cannot be applied to the sandbox: commands of provider local use the host",
  );
  expect(() => make("redirected", { network: "bridge" })).toThrow("it joins network bridge of the engine");
  expect(make("redirected").secrets).toEqual([use]);
});

describe("a network policy", () => {
  it("is refused where connections of a sandbox would bypass the node", () => {
    for (const network of ["open", "ask", { rules: [{ allow: "example.com" }] }] as const) {
      expect(() => make({ network: network as never }, "host")).toThrow("use the host's network");
      expect(() => make({ network: network as never, container: { network: "bridge" } })).toThrow(
        "it joins network bridge of the engine",
      );
      expect(() => make({ network: network as never })).not.toThrow();
    }
    expect(() => make({ network: "none" }, "host")).not.toThrow();
    expect(() => make({}, "host")).not.toThrow();
  });

  it("of the node's defaults is not shown where connections of a sandbox bypass the node", () => {
    expect(make({}).network).toEqual(open);
    expect(make({}, "host").network).toEqual(completeNetwork("none"));
    expect(make({ container: { network: "bridge" } }).network).toEqual(completeNetwork("none"));
  });
});
