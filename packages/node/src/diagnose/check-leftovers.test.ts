import { type InstanceRecord, type Provider, SandboxError } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { checkLeftovers } from "./check-leftovers.ts";

function providerWith(...instances: readonly Partial<InstanceRecord>[]) {
  const removed: SandboxId[] = [];
  const list = async () => instances.map((instance) => ({ id: createSandboxId(), isOrphan: false, ...instance }));
  const remove = async (id: SandboxId) => void removed.push(id);
  return { removed, provider: { list, remove } as unknown as Provider };
}

describe("checkLeftovers", () => {
  it("finds none when every instance has a living owner", async () => {
    const { provider, removed } = providerWith({ isOrphan: false });
    expect(await checkLeftovers([provider], { remove: true })).toMatchObject({
      status: "ok",
      detail: "none",
    });
    expect(removed).toEqual([]);
  });

  it("only lists leftovers unless asked to remove them", async () => {
    const id = createSandboxId();
    const { provider, removed } = providerWith({ id, isOrphan: true });
    const check = await checkLeftovers([provider], { remove: false });
    expect(check).toMatchObject({ status: "warning", hint: expect.stringContaining("--fix") });
    expect(check.detail).toContain(id);
    expect(removed).toEqual([]);
  });

  it("removes leftovers on request, and no other instances", async () => {
    const id = createSandboxId();
    const { provider, removed } = providerWith({ id, isOrphan: true }, { isOrphan: false });
    expect(await checkLeftovers([provider], { remove: true })).toMatchObject({ status: "ok" });
    expect(removed).toEqual([id]);
  });

  it.each([
    ["unavailable", "engine_unreachable"],
    ["failed_precondition", "engine_missing"],
  ] as const)("skips a provider whose engine is missing (%s, %s)", async (code, reason) => {
    const away = SandboxError.fromFields({ code, reason, message: "no engine" });
    const id = createSandboxId();
    const { provider } = providerWith({ id, isOrphan: true });
    const absent = { list: () => Promise.reject(away) } as unknown as Provider;
    const check = await checkLeftovers([absent, provider], { remove: false });
    expect(check.detail).toContain(`1 left by dead programs: ${id}`);
  });

  it("warns when a provider cannot list its instances", async () => {
    const provider = { list: () => Promise.reject(new Error("no such disk")) } as unknown as Provider;
    expect(await checkLeftovers([provider], { remove: false })).toMatchObject({
      status: "warning",
      detail: "no such disk",
    });
  });
});
