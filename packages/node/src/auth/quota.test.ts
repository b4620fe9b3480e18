import { describe, expect, it } from "vitest";
import { MomentaryUsage } from "./momentary-usage.ts";
import { type Account, NO_QUOTA, requireQuota } from "./quota.ts";

const usage = { sandboxes: 2, memoryMib: 512, vcpuCount: 3, diskMib: 2048 };
const wanted = { sandboxes: 1, memoryMib: 256, vcpuCount: 0.5, diskMib: 1024 };

function key(quota: object): Account {
  return { kind: "key", name: "0a1b2c3d", quota: { ...NO_QUOTA, ...quota } };
}

describe("a quota", () => {
  it.each([
    ["maxSandboxes", 2, { used: 2, wanted: 1 }],
    ["maxMemoryMib", 767, { used: 512, wanted: 256 }],
    ["maxVcpuCount", 3.4, { used: 3, wanted: 0.5 }],
    ["maxDiskMib", 3000, { used: 2048, wanted: 1024 }],
    ["maxSandboxes", 0, { used: 2, wanted: 1 }],
  ])("of %s = %d is enforced, with usage, demand and limit in the error", (quota, limit, details) => {
    expect(() => requireQuota(key({ [quota]: limit }), usage, wanted)).toThrow(
      expect.objectContaining({
        code: "resource_exhausted",
        reason: "quota_exceeded",
        details: { quota, limit, key: "0a1b2c3d", ...details },
      }),
    );
  });

  it("can be used completely", () => {
    expect(() =>
      requireQuota(key({ maxSandboxes: 3, maxMemoryMib: 768, maxVcpuCount: 3.5 }), usage, wanted),
    ).not.toThrow();
    expect(() => requireQuota(key({ maxVcpuCount: 0.3 }), { vcpuCount: 0.1 }, { vcpuCount: 0.2 })).not.toThrow();
  });

  it("that is not set limits nothing, and one that was lowered refuses nothing that needs none of it", () => {
    expect(() => requireQuota(key({}), usage, wanted)).not.toThrow();
    expect(() => requireQuota(key({ maxSandboxes: 1 }), usage, { checkpoints: 1 })).not.toThrow();
  });
});

describe("momentary usage", () => {
  const quotas = {
    keyQuota: (id: string) => ({ ...NO_QUOTA, maxSockets: id === "a" ? 1 : null }),
    tenantQuota: () => ({ ...NO_QUOTA, maxSockets: 2, maxBodyBytes: 100 }),
  };
  const [a, b] = ["a", "b"].map((keyId) => ({ keyId, tenant: "t" })) as [
    { keyId: string; tenant: string },
    { keyId: string; tenant: string },
  ];

  it("is limited per key and per tenant until it is disposed", () => {
    const current = new MomentaryUsage(quotas);
    const first = current.take(a, "sockets");
    expect(() => current.take(a, "sockets")).toThrow(/key a has a quota of 1 open WebSockets/);
    using _ = current.take(b, "sockets");
    expect(() => current.take(b, "sockets")).toThrow(/tenant t has a quota of 2 open WebSockets/);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    expect(current.of({ kind: "tenant", name: "t" }).sockets).toBe(1);
    current.take(a, "sockets")[Symbol.dispose]();
  });

  it("counts amounts, and what exists already even above the limit", () => {
    const current = new MomentaryUsage(quotas);
    const large = current.hold(a, "bodyBytes", 150);
    expect(() => current.take(b, "bodyBytes", 1)).toThrow(/100 bytes/);
    large[Symbol.dispose]();
    current.take(b, "bodyBytes", 100);
    expect(current.of({ kind: "key", name: "b" }).bodyBytes).toBe(100);
  });
});
