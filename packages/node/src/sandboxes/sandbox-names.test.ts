import { rejection } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { mockNode } from "../testing/mock-node.ts";

const inUse = { code: "already_exists", reason: "name_in_use" };

describe("the name of a sandbox", () => {
  it("is refused while another sandbox of the tenant has it, for a creation, a rename and a fork", async () => {
    const node = mockNode({ provider: new MockProvider() });
    const { id } = await node.create({ name: "build" });
    const other = await node.create({ name: "other" });
    expect(await rejection(node.create({ name: "build" }))).toMatchObject({ ...inUse, details: { sandbox: id } });
    expect(await rejection(node.sandboxes.update(node.owner, other.id, { name: "build" }))).toMatchObject(inUse);
    expect(await rejection(node.forks.fork(node.owner, other.id, { name: "build" }))).toMatchObject(inUse);
    expect(node.get(other.id).name).toBe("other");
    expect(node.registry.current()).toHaveLength(2);
    expect(node.provider.leftovers(other.id)).toEqual(node.provider.leftovers(id).map(() => expect.anything()));
  });

  it("is free for other tenants, and again after its sandbox is destroyed or failed to start", async () => {
    const node = mockNode({ provider: new MockProvider() });
    const { id } = await node.create({ name: "build" });
    const stranger = node.principal({ tenant: "theirs" });
    await node.sandboxes.create(stranger, { provider: "mock", name: "build" });
    await node.sandboxes.remove(node.owner, id);
    expect((await node.create({ name: "build" })).name).toBe("build");
  });

  it("goes to exactly one of many concurrent creations", async () => {
    const node = mockNode({ provider: new MockProvider() });
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => node.create({ name: "build" })));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(node.registry.current()).toHaveLength(1);
  });
});
