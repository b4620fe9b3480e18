import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { Principal } from "./principal.ts";
import { requireQuota } from "./quota.ts";

const unlimited = { maxSandboxes: null, maxMemoryMib: null, maxVcpuCount: null };
const usage = { sandboxes: 2, memoryMib: 512, vcpuCount: 3 };
const wanted = { sandboxes: 1, memoryMib: 256, vcpuCount: 0.5 };

function key(quota: object): Principal {
  return { kind: "key", keyId: "0a1b2c3d", tenant: "a", scopes: ["sandboxes"], quota: { ...unlimited, ...quota } };
}

describe("a quota", () => {
  it.each([
    ["maxSandboxes", 2, { used: 2, wanted: 1 }],
    ["maxMemoryMib", 767, { used: 512, wanted: 256 }],
    ["maxVcpuCount", 3.4, { used: 3, wanted: 0.5 }],
    ["maxSandboxes", 0, { used: 2, wanted: 1 }],
  ])("of %s = %d is enforced, with usage, demand and limit in the error", (quota, limit, details) => {
    expect(() => requireQuota(key({ [quota]: limit }), usage, wanted)).toThrow(
      expect.objectContaining({
        code: "resource_exhausted",
        reason: "quota_exceeded",
        details: { quota, limit, ...details },
      }),
    );
  });

  it("can be used completely", () => {
    expect(() =>
      requireQuota(key({ maxSandboxes: 3, maxMemoryMib: 768, maxVcpuCount: 3.5 }), usage, wanted),
    ).not.toThrow();
    const parts = { sandboxes: 0, memoryMib: 0, vcpuCount: 0.2 };
    expect(() => requireQuota(key({ maxVcpuCount: 0.3 }), { ...usage, vcpuCount: 0.1 }, parts)).not.toThrow();
  });

  it("that is not set limits nothing, and a sandbox token has none", () => {
    const token: Principal = { kind: "sandbox", sandboxId: createSandboxId(), tenant: "a" };
    for (const principal of [key({}), token]) expect(() => requireQuota(principal, usage, wanted)).not.toThrow();
  });
});
