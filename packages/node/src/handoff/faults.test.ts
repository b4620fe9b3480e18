import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { LEASE_MS, owner, ShakyStore, startShakyNode } from "./testing/shaky-node.ts";

const broken = new SandboxError("internal", { reason: "boot_failed", message: "no room for it" });

describe("a sandbox whose lease was lost", () => {
  it("may run here again: the guard is told that what it ended is gone", async () => {
    const shared = new ShakyStore();
    await using node = startShakyNode(shared, "a");
    const { id } = await node.service.create(owner, { provider: "mock" });
    await node.checkpoints.create(owner, id, {});
    expect(node.deadlines.get(id)).toBeGreaterThan(0);
    shared.fault = () => ({ fail: "before" });
    await shared.clock.advance(LEASE_MS);
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => node.deadlines.get(id)).toBeUndefined();
    expect(await node.instances()).toEqual([]);
  });
});

describe("a restore that fails", () => {
  it("because there is no place while the checkpoint is still being fetched fails alone, not the whole node", async () => {
    const shared = new ShakyStore();
    await using node = startShakyNode(shared, "a");
    const { id } = await node.service.create(owner, { provider: "mock" });
    await node.checkpoints.pause(owner, id);
    node.provider.faults.bootFailure = broken;
    shared.fault = ({ key }) => (key.startsWith("checkpoints/") ? { delayMs: 1000 } : undefined);
    const resumed = node.checkpoints.resume(owner, id);
    resumed.catch(() => {});
    await shared.clock.advance(100);
    await shared.clock.advance(2000);
    await expect(resumed).rejects.toMatchObject({ reason: "boot_failed" });
  });

  it("because the lease ended meanwhile leaves no place behind", async () => {
    const shared = new ShakyStore();
    await using node = startShakyNode(shared, "a");
    const { id } = await node.service.create(owner, { provider: "mock" });
    // The sandbox has stopped to be saved; by the time that turns out to be impossible, it is not this node's any more.
    shared.fault = ({ key }) => ({ fail: "before", ...(!/^(locks|states)/.test(key) && { delayMs: 2 * LEASE_MS }) });
    const drained = node.handoffs?.drain(new AbortController().signal);
    await expect.poll(() => node.live.get(id)).toBeUndefined();
    await shared.clock.advance(1);
    await shared.clock.advance(3 * LEASE_MS);
    await drained;
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => node.instances()).toEqual([]);
  });
});
