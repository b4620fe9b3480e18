import { SandboxError } from "@sandpiper/core";
import { rejection, settle } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import type { NodeConfigOptions } from "../config/node-config.ts";
import { forgetEnded } from "../reconcile/forget-ended.ts";
import { mockNode } from "../testing/mock-node.ts";

function setUp(options: { provider?: MockProvider; config?: NodeConfigOptions } = {}) {
  const containers = new MockContainers({ "base:1": "sha256:one", "base:2": "sha256:two" });
  const node = mockNode({ provider: new MockProvider({ containers }), ...options });
  return { ...node, engine: node.provider.containers as MockContainers };
}

const mock = { provider: "mock" } as const;

describe("a rebuild", () => {
  it("recreates a sandbox from its current image, with its volumes and without its processes", async () => {
    const node = setUp();
    const options = { ...mock, image: "base:1", name: "kept", env: { A: "1" } };
    const { id } = await node.sandboxes.create(node.owner, options);
    const reader = await node.open(id).start({ command: "sleep 3600" });
    const waiting = rejection(reader.wait());
    node.engine.images.set("base:1", "sha256:new");
    const volume = node.engine.volumes.get(id);
    expect(await node.engine.isOutdated(id)).toBe(true);

    const rebuilt = await node.rebuilds.rebuild(node.owner, id);
    expect(rebuilt).toMatchObject({ id, state: "ready", name: "kept", image: "base:1" });
    expect(await node.engine.isOutdated(id)).toBe(false);
    expect(node.engine.volumes.get(id)).toBe(volume);
    expect(await waiting).toBeInstanceOf(SandboxError);
    const live = node.open(id);
    expect(await live.processes()).toEqual([]);
    expect((await live.exec({ command: 'echo "$A"' })).stdout).toBe("1\n");
    expect(node.kinds()).toContain("sandbox.rebuilt");
    expect(node.provider.size).toBe(1);
  });

  it("restarts a failed sandbox, which then counts towards the limit again", async () => {
    const node = setUp({ config: { maxSandboxes: 1 } });
    const { id } = await node.create();
    node.provider.instance(id).crash("its container was removed");
    await node.clock.advance(10);
    expect(node.get(id)).toMatchObject({
      state: "failed",
      failure: { reason: "instance_crashed" },
    });
    const volume = node.engine.volumes.get(id);

    expect(await node.rebuilds.rebuild(node.owner, id)).toMatchObject({ state: "ready", failure: null });
    expect([volume, node.engine.volumes.get(id)]).toEqual([1, 1]);
    expect((await node.open(id).exec({ argv: ["echo", "back"] })).stdout).toBe("back\n");
    expect(await rejection(node.create())).toMatchObject({ reason: "sandbox_limit" });
  });

  it("is refused for a sandbox whose creation failed, because its environment is not kept", async () => {
    const node = setUp();
    node.provider.faults.bootFailure = new SandboxError("instance_crashed", { message: "no" });
    await rejection(node.create({ env: { A: "1" } }));
    delete node.provider.faults.bootFailure;
    const [failed] = node.sandboxes.list(node.owner, { state: "failed" }).items;
    const refused = await rejection(node.rebuilds.rebuild(node.owner, failed?.id as SandboxId));
    expect(refused).toMatchObject({ reason: "not_ready", hint: "create a new sandbox" });
  });

  it("leaves a sandbox running if its image no longer exists", async () => {
    const node = setUp();
    const { id } = await node.create({ image: "base:1" });
    node.engine.images.delete("base:1");
    expect(await rejection(node.rebuilds.rebuild(node.owner, id))).toMatchObject({ reason: "image_not_found" });
    expect(node.get(id).state).toBe("ready");
    expect((await node.open(id).exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
  });

  it("that fails keeps the volumes, and can be repeated", async () => {
    const node = setUp();
    const { id } = await node.create();
    node.provider.faults.bootFailure = SandboxError.fromFields({
      code: "unavailable",
      reason: "no",
      message: "no container",
    });
    expect(await rejection(node.rebuilds.rebuild(node.owner, id))).toMatchObject({ reason: "no" });
    expect(node.get(id)).toMatchObject({ state: "failed", failure: { reason: "no" } });
    expect([node.engine.volumes.has(id), node.provider.size]).toEqual([true, 0]);
    delete node.provider.faults.bootFailure;
    expect(await node.rebuilds.rebuild(node.owner, id)).toMatchObject({ state: "ready", failure: null });
  });

  it("waits for other changes to the sandbox, and is refused while it is paused", async () => {
    const node = setUp();
    const { id } = await node.create();
    const removal = node.sandboxes.remove(node.owner, id);
    expect(await rejection(node.rebuilds.rebuild(node.owner, id))).toMatchObject({ reason: "not_ready" });
    await removal;
    const other = await node.create();
    await node.checkpoints.pause(node.owner, other.id);
    const refused = await rejection(node.rebuilds.rebuild(node.owner, other.id));
    expect(refused).toMatchObject({ code: "failed_precondition", hint: "resume it first" });
  });

  it("is refused for other tenants' sandboxes, and for providers without containers", async () => {
    const node = setUp();
    const { id } = await node.create();
    const other = node.principal({ tenant: "other" });
    expect(await rejection(node.rebuilds.rebuild(other, id))).toMatchObject({ code: "not_found" });
    const plain = setUp({ provider: new MockProvider() });
    const created = await plain.create();
    expect(await rejection(plain.rebuilds.rebuild(plain.owner, created.id))).toMatchObject({ code: "unimplemented" });
  });
});

describe("volumes", () => {
  it("are deleted with their sandbox in any state", async () => {
    const node = setUp();
    const ids = await Promise.all([1, 2, 3].map(async () => (await node.create()).id));
    const [ready, failed, paused] = ids as unknown as [SandboxId, SandboxId, SandboxId];
    node.provider.instance(failed).crash();
    await node.checkpoints.pause(node.owner, paused);
    await node.clock.advance(10);
    expect(node.engine.volumes.has(failed)).toBe(true);
    for (const id of [ready, failed, paused]) await node.sandboxes.remove(node.owner, id);
    expect(node.engine.volumes.size).toBe(0);
    expect(node.provider.size).toBe(0);
  });

  it("are deleted with a sandbox that is destroyed just as it fails", async () => {
    const node = setUp();
    const { id } = await node.create();
    node.provider.faults.destroyDelayMs = 50;
    node.provider.instance(id).crash();
    await node.clock.advance(1);
    const removal = node.sandboxes.remove(node.owner, id);
    await settle();
    await node.clock.advance(200);
    await removal;
    expect(node.engine.volumes.has(id)).toBe(false);
  });

  it("of a failed sandbox are kept until its record is deleted", async () => {
    const node = setUp();
    const { id } = await node.create();
    node.provider.instance(id).crash();
    await node.clock.advance(10);
    const forget = () => forgetEnded({ ...node, keepMs: 60_000 });
    await forget();
    expect([node.engine.volumes.has(id), node.records.get(id)?.state]).toEqual([true, "failed"]);
    await node.clock.advance(120_000);
    await forget();
    expect([node.engine.volumes.has(id), node.records.get(id)]).toEqual([false, undefined]);
  });
});
