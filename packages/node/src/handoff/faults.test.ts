import { SandboxError } from "@sandpiper/core";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { LEASE_MS, owner, ShakyStore, startShakyNode, startUnreadyNode } from "./testing/shaky-node.ts";

const start = (shared: ShakyStore, name: string) =>
  startShakyNode(shared, name, new MockProvider({ clock: shared.clock }));

async function oneNode() {
  const shared = new ShakyStore();
  const node = start(shared, "a");
  const { id } = await node.sandboxes.create(owner, { provider: "mock" });
  return { shared, node, id };
}

async function twoNodes() {
  const { node: a, ...rest } = await oneNode();
  return { ...rest, a, b: start(rest.shared, "b") };
}

const broken = new SandboxError("boot_failed", { message: "the instance does not boot" });

describe("a sandbox whose lease was lost", () => {
  it("can run on this node again once its instance is destroyed", async () => {
    const { shared, node, id } = await oneNode();
    await node.checkpoints.create(owner, id, {});
    expect(node.deadlines.get(id)).toBeGreaterThan(0);
    shared.fault = () => ({ fail: "before" });
    await shared.clock.advance(LEASE_MS);
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => node.deadlines.get(id)).toBeUndefined();
    expect(await node.instances()).toEqual([]);
  });
});

describe("a sandbox whose container has ended by itself", () => {
  async function ended() {
    const shared = new ShakyStore();
    const containers = new MockContainers({ "python:3.13-slim": "sha256:default" });
    const provider = new MockProvider({ clock: shared.clock, containers });
    const node = startShakyNode(shared, "a", provider);
    const { id } = await node.sandboxes.create(owner, { provider: "mock", onFailure: "restore" });
    await node.checkpoints.create(owner, id, {});
    provider.instance(id).crash();
    const state = async () => {
      await shared.clock.advance(1);
      return node.registry.record(id)?.state;
    };
    await expect.poll(state).toBe("stopped");
    expect(containers.volumes.has(id)).toBe(true);
    return { shared, node, id, containers };
  }

  it("leaves no volumes on a node that loses its lease", async () => {
    const { shared, node, id, containers } = await ended();
    shared.fault = () => ({ fail: "before" });
    await shared.clock.advance(LEASE_MS);
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => [...containers.volumes.keys()]).toEqual([]);
  });

  it("leaves no volumes on a node that hands it over", async () => {
    const { node, id, containers } = await ended();
    await node.handoffs?.drain(new AbortController().signal);
    expect(node.records.get(id)).toBeUndefined();
    expect([...containers.volumes.keys()]).toEqual([]);
  });
});

describe("a sandbox whose node has crashed", () => {
  it("is restored from its checkpoint on another node when the lease expires", async () => {
    const { shared, a, b, id } = await twoNodes();
    await a.checkpoints.create(owner, id, {});
    a.leases.dispose();
    const brought = b.locator.bring(owner, id, { takeover: false });
    brought.catch(() => {});
    await expect.poll(async () => (await b.leases.read(id))?.waiter).not.toBeNull();
    await shared.clock.advance(LEASE_MS + 1000);
    expect(await brought).toMatchObject({ state: "ready", rolledBackTo: expect.anything() });
  });
});

describe("a handoff", () => {
  it("reports the time of each of its steps on both nodes", async () => {
    const { shared, a, b, id } = await twoNodes();
    const brought = b.locator.bring(owner, id, { takeover: false });
    brought.catch(() => {});
    await expect.poll(async () => (await b.leases.read(id))?.waiter).not.toBeNull();
    await shared.clock.advance(LEASE_MS / 3);
    await expect.poll(async () => (await b.leases.read(id))?.owner).toBeNull();
    await shared.clock.advance(1000);
    await brought;
    await expect.poll(() => a.reports).toHaveLength(1);
    const steps = [a, b].map(({ reports: [report] }) => [report?.side, Object.keys(report?.stepsMs ?? {})]);
    expect(steps).toEqual([
      ["sender", ["begun", "checkpointed", "saved", "committed", "released", "ended"]],
      [
        "receiver",
        ["located", "prepared", "registered", "acquired", "claimed", "loaded", "restored", "connected", "running"],
      ],
    ]);
    expect(b.reports[0]?.stepsMs.acquired).toBeGreaterThanOrEqual(LEASE_MS / 3);
  });

  it("leaves the sandbox with its owner if this node cannot prepare an instance", async () => {
    const { a, b, id } = await twoNodes();
    b.provider.faults.bootFailure = broken;
    await expect(b.locator.bring(owner, id, { takeover: false })).rejects.toMatchObject({ reason: "boot_failed" });
    expect(a.registry.running(id)).toBeDefined();
    expect((await b.leases.read(id))?.waiter).toBeNull();
    expect(await b.instances()).toEqual([]);
  });
});

describe("a failed restore", () => {
  it("does not crash the node if the prepared instance fails during the download", async () => {
    const { shared, node, id } = await oneNode();
    await node.checkpoints.pause(owner, id);
    node.provider.faults.bootFailure = broken;
    shared.fault = ({ key }) => (key.startsWith("checkpoints/") ? { delayMs: 1000 } : undefined);
    const resumed = node.checkpoints.resume(owner, id);
    resumed.catch(() => {});
    await shared.clock.advance(100);
    await shared.clock.advance(2000);
    await expect(resumed).rejects.toMatchObject({ reason: "boot_failed" });
  });

  it("leaves no instance if the lease expires meanwhile", async () => {
    const { shared, node, id } = await oneNode();
    // The sandbox stops to be saved. By the time the save fails, this node has lost the lease.
    shared.fault = ({ key }) => ({ fail: "before", ...(!/^(locks|states)/.test(key) && { delayMs: 2 * LEASE_MS }) });
    const drained = node.handoffs?.drain(new AbortController().signal);
    await expect.poll(() => node.registry.running(id)).toBeUndefined();
    await shared.clock.advance(1);
    await shared.clock.advance(3 * LEASE_MS);
    await drained;
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => node.instances()).toEqual([]);
  });
});

describe("a released sandbox", () => {
  it("leaves no instance if the store is unreachable, and can be restored when its lease expires", async () => {
    const { shared, node, id } = await oneNode();
    shared.fault = ({ key, operation }) =>
      key.startsWith("locks/") && operation === "put" ? { fail: "before" } : undefined;
    node.handoffs?.wanted(id);
    await expect.poll(() => node.leases.held(id)?.isHeld).toBe(false);
    await shared.clock.advance(2 * LEASE_MS);
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    await expect.poll(() => node.instances()).toEqual([]);
    shared.fault = () => undefined;
    await node.locator.claim(owner, id, { purpose: "use", readOnly: true });
    expect(node.records.get(id)?.state).toBe("ready");
    expect(node.records.get(id)?.rollbacks).toBe(0);
  });

  it("keeps the changes that were made while it was paused", async () => {
    const { a, b, id } = await twoNodes();
    await a.checkpoints.pause(owner, id);
    await a.sandboxes.update(owner, id, { name: "renamed" });
    await a.handoffs?.drain(new AbortController().signal);
    await b.locator.claim(owner, id, { purpose: "end", readOnly: false });
    expect(b.records.get(id)).toMatchObject({ name: "renamed", state: "paused" });
  });
});

describe("a sandbox whose instance was lost in a restart of its node", () => {
  it.each([
    ["released", false],
    ["renamed and released", true],
  ])("reports the rollback on its next node, even if it is %s before its next use", async (_, isRenamed) => {
    const { a, b, id } = await twoNodes();
    await a.checkpoints.create(owner, id, {});
    await a.access.open(owner, id, { readOnly: false }).exec({ command: "echo acknowledged > file" });
    // The state after a reconciliation that finds no instance: the next use restores the checkpoint.
    const { sandbox } = a.registry.instance(id);
    a.registry.detach(id);
    await sandbox.destroy();
    a.records.change(id, { state: "stopped" });
    if (isRenamed) await a.sandboxes.update(owner, id, { name: "renamed" });
    a.handoffs?.wanted(id);
    await expect.poll(() => a.records.get(id)).toBeUndefined();
    await b.locator.claim(owner, id, { purpose: "use", readOnly: true });
    expect(b.records.get(id)).toMatchObject({ state: "ready", rollbacks: 1, name: isRenamed ? "renamed" : null });
    expect(b.records.get(id)?.rolledBackTo).not.toBeNull();
  });
});

describe("a sandbox with a record but no lease on this node", () => {
  it("is located in the store when it is used", async () => {
    const { node, id } = await oneNode();
    await node.checkpoints.pause(owner, id);
    const record = node.records.get(id);
    await node.leaseOwnership?.release(id);
    expect(record?.state).toBe("paused");
    await node.locator.claim(owner, id, { purpose: "use", readOnly: true });
    expect((await node.checkpoints.resume(owner, id)).state).toBe("ready");
  });

  it("can be destroyed after it failed, together with its checkpoints", async () => {
    const { shared, node, id } = await oneNode();
    await node.checkpoints.pause(owner, id);
    node.records.change(id, { state: "failed", endedAt: shared.clock.now() });
    await node.leaseOwnership?.release(id);
    await node.locator.claim(owner, id, { purpose: "end", readOnly: false });
    await node.sandboxes.remove(owner, id);
    expect(await shared.keys("locks/")).toEqual([]);
    expect(await shared.keys("checkpoints/")).toEqual([]);
  });

  it("can be destroyed if it never had a lease", async () => {
    const shared = new ShakyStore();
    const node = start(shared, "a");
    shared.fault = ({ key }) => (key.startsWith("locks/") ? { fail: "before" } : undefined);
    const created = node.sandboxes.create(owner, { provider: "mock" });
    created.catch(() => {});
    await shared.clock.advance(LEASE_MS);
    await expect(created).rejects.toMatchObject({ code: "unavailable" });
    const [failed] = node.sandboxes.list(owner, {}).items;
    expect(failed).toMatchObject({ state: "failed" });
    await node.sandboxes.remove(owner, failed?.id ?? "");
    expect(await node.instances()).toEqual([]);
  });
});

describe("a destroyed sandbox", () => {
  it("leaves no checkpoint in the store, not even one that a crash left unlisted", async () => {
    const { shared, node, id } = await oneNode();
    await node.checkpoints.create(owner, id, {});
    await shared.store.put(`checkpoints/${id}/${crypto.randomUUID()}.json`, new Uint8Array(1));
    await node.sandboxes.remove(owner, id);
    expect(await shared.keys("checkpoints/")).toEqual([]);
  });

  it("leaves no lease if it never booted", async () => {
    const shared = new ShakyStore();
    const node = start(shared, "a");
    node.provider.faults.bootFailure = broken;
    await expect(node.sandboxes.create(owner, { provider: "mock" })).rejects.toMatchObject({ reason: "boot_failed" });
    expect([...(await shared.keys("locks/")), ...(await shared.keys("states/"))]).toEqual([]);
  });
});

describe("a rollback that fails after the sandbox has stopped", () => {
  it("leaves a sandbox whose next use restores its newest checkpoint", async () => {
    const { node, id } = await oneNode();
    await node.checkpoints.create(owner, id, {});
    node.provider.faults.restoreFailure = broken;
    await expect(node.checkpoints.rollback(owner, id, {})).rejects.toMatchObject({ reason: "boot_failed" });
    delete node.provider.faults.restoreFailure;
    await node.locator.claim(owner, id, { purpose: "use", readOnly: true });
    expect((await node.access.open(owner, id, { readOnly: false }).exec({ command: "echo here" })).stdout).toBe(
      "here\n",
    );
  });
});

describe("a fork that fails", () => {
  it("because the store is unreachable leaves neither an instance nor a record", async () => {
    const { shared, node, id } = await oneNode();
    node.provider.faults.restoreDelayMs = LEASE_MS / 2;
    shared.fault = ({ key }) => (key.startsWith("locks/") && !key.includes(id) ? { fail: "before" } : undefined);
    const forked = node.forks.fork(owner, id, { count: 2 });
    forked.catch(() => {});
    await expect.poll(() => node.records.live().length).toBe(3);
    await shared.clock.advance(LEASE_MS);
    await expect(forked).rejects.toMatchObject({ code: "unavailable" });
    expect(node.records.live().map((record) => record.id)).toEqual([id]);
    await node.prepared[Symbol.asyncDispose]();
    expect(await node.instances()).toEqual([id]);
  });
});

describe("a checkpoint's creation time", () => {
  it("is before the save, so that the checkpoint contains everything up to it", async () => {
    const { shared, node, id } = await oneNode();
    node.provider.faults.checkpointDelayMs = 1000;
    const startedAt = shared.clock.now().getTime();
    const saving = node.checkpoints.create(owner, id, {});
    await expect.poll(() => shared.clock.advance(100).then(() => node.checkpoints.list(owner, id))).toHaveLength(1);
    // The clock may have advanced before the save started, which takes a second.
    expect(Date.parse((await saving).createdAt)).toBeLessThan(shared.clock.now().getTime() - 900);
    expect(Date.parse((await saving).createdAt)).toBeGreaterThanOrEqual(startedAt);
  });
});

describe("a sandbox whose new node cannot store its record", () => {
  it("is released immediately, and can be claimed again later", async () => {
    const { a, b, id } = await twoNodes();
    await a.handoffs?.drain(new AbortController().signal);
    const { add } = b.records;
    b.records.add = () => {
      throw broken;
    };
    await expect(b.locator.claim(owner, id, { purpose: "use", readOnly: true })).rejects.toMatchObject({
      reason: "boot_failed",
    });
    expect(b.leases.held(id)).toBeUndefined();
    expect(await b.instances()).toEqual([]);
    b.records.add = add;
    await b.locator.claim(owner, id, { purpose: "use", readOnly: true });
    expect(b.records.get(id)?.state).toBe("ready");
  });
});

describe("a sandbox that is released to a waiting node", () => {
  it("is refused to a third node with handoff_under_way", async () => {
    const { shared, a, b, id } = await twoNodes();
    const leaving = new AbortController();
    const waiting = b.leases.wait(id, { takeover: false, signal: leaving.signal });
    waiting.catch(() => {});
    await expect.poll(async () => (await a.leases.read(id))?.waiter).not.toBeNull();
    await a.handoffs?.drain(new AbortController().signal);
    const c = start(shared, "c");
    await expect(c.locator.claim(owner, id, { purpose: "use", readOnly: true })).rejects.toMatchObject({
      reason: "handoff_under_way",
    });
    leaving.abort();
    await shared.clock.advance(LEASE_MS);
  });
});

describe("a node that starts while another waits for one of its sandboxes", () => {
  it("releases it only once it knows whether the sandbox runs here", async () => {
    const shared = new ShakyStore();
    const node = startUnreadyNode(shared, "a", new MockProvider({ clock: shared.clock }));
    const { id } = await node.sandboxes.create(owner, { provider: "mock" });
    // Before the node adopts its instances, no sandbox seems to run.
    const entry = node.registry.instance(id);
    node.registry.detach(id);
    node.handoffs?.wanted(id);
    await shared.clock.advance(1000);
    expect(node.records.get(id)?.state).toBe("ready");
    node.registry.attach(entry.sandbox, entry.record);
    node.handoffs?.open();
    await expect.poll(() => node.records.get(id)).toBeUndefined();
    expect((await node.ownership.peek(id))?.checkpoints).toHaveLength(1);
  });
});
