import { SandboxError } from "@sandpiper/core";
import { rejection, settle } from "@sandpiper/core/testing";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { describe, expect, it, onTestFinished } from "vitest";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { mockNode } from "../testing/mock-node.ts";
import { NodeReconciler } from "./node-reconciler.ts";
import { untilReconciled } from "./until-reconciled.ts";

function setUp(options: { provider?: MockProvider; home?: string } = {}) {
  const containers = new MockContainers({ "base:1": "sha256:one", "base:2": "sha256:two" });
  const node = mockNode({ provider: new MockProvider({ containers }), ...options });
  return { ...node, engine: node.provider.containers as MockContainers };
}

const mock = { provider: "mock" } as const;

describe("a restarted node with containers", () => {
  it("rebuilds containers whose image has changed", async () => {
    const first = setUp();
    const outdated = await first.create({ image: "base:1" });
    const current = await first.create({ image: "base:2" });
    first.engine.images.set("base:1", "sha256:new");
    const second = setUp({ home: first.home, provider: first.die() });
    const result = await new NodeReconciler(second).reconcile();
    expect(result).toMatchObject({ rebuilt: [outdated.id], lost: [], failed: [] });
    expect(result.adopted.toSorted()).toEqual([outdated.id, current.id].sort());
    expect(await second.engine.isOutdated(outdated.id)).toBe(false);
    expect([...second.engine.volumes]).toEqual([
      [outdated.id, 1],
      [current.id, 2],
    ]);
    expect((await second.open(outdated.id).exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
  });

  it("keeps a container running that it cannot rebuild, and reports the failure", async () => {
    const first = setUp();
    const { id } = await first.create({ image: "base:1" });
    first.engine.images.delete("base:1");
    const second = setUp({ home: first.home, provider: first.die() });
    const { adopted, rebuilt, failed } = await new NodeReconciler(second).reconcile();
    expect({ adopted, rebuilt, failed }).toMatchObject({
      adopted: [id],
      rebuilt: [],
      failed: [{ id, error: { reason: "image_not_found" } }],
    });
    expect(second.get(id).state).toBe("ready");
  });

  it("keeps the volumes of lost and unknown sandboxes, but not those of warm instances", async () => {
    const first = setUp();
    const { id: lost } = await first.create();
    const { id: unknown } = await first.create();
    first.pool.set({ ...mock, target: 1 });
    await first.clock.advance(1000);
    expect(first.engine.volumes.size).toBe(3);
    first.records.remove(unknown);
    const provider = first.die();
    await provider.remove(lost, { keepsVolumes: true });
    const second = setUp({ home: first.home, provider });
    const result = await new NodeReconciler(second).reconcile();
    expect(result).toMatchObject({ adopted: [], lost: [lost], failed: [] });
    expect(result.removed).toHaveLength(2);
    expect(provider.size).toBe(0);
    expect([...second.engine.volumes.keys()]).toEqual([lost, unknown]);
    expect(await second.rebuilds.rebuild(second.owner, lost)).toMatchObject({ state: "ready" });
  });

  it("keeps the volumes of a sandbox that it was destroying with its volumes kept", async () => {
    const first = setUp();
    const { id } = await first.create();
    await first.checkpoints.create(first.owner, id, {});
    first.volumes.decide(first.records.get(id) as SandboxRecord, { keeps: true });
    const provider = first.die();
    await provider.remove(id, { keepsVolumes: true });
    const second = setUp({ home: first.home, provider });
    expect(await new NodeReconciler(second).reconcile()).toMatchObject({ setBack: [id], failed: [] });
    expect([...second.engine.volumes.keys()]).toEqual([id]);
    expect(await second.volumes.list(second.owner)).toEqual([]);
    await second.sandboxes.remove(second.owner, id, { volumes: "keep" });
    expect(await second.volumes.list(second.owner)).toMatchObject([{ sandbox: id, name: `sandpiper-data-${id}` }]);
  });

  it("marks no sandbox as lost while the engine does not respond, and adopts it once it does", async () => {
    const first = setUp();
    const { id } = await first.create();
    const provider = first.die();
    const unreachable = new SandboxError("engine_unreachable", { message: "no engine" });
    provider.faults.listFailure = unreachable;
    const second = setUp({ home: first.home, provider });
    const reconciler = new NodeReconciler(second);
    expect(await reconciler.reconcile()).toMatchObject({
      unreachable: [{ provider: "mock", error: unreachable }],
      lost: [],
    });
    expect(second.get(id).state).toBe("ready");
    expect(() => second.open(id)).toThrow("cannot be reached yet");

    const reports: number[] = [];
    const tell = ({ adopted }: { adopted: readonly unknown[] }) => void reports.push(adopted.length);
    onTestFinished(
      untilReconciled(reconciler, { clock: second.clock, tell, onError: (error) => second.errors.push(error) }),
    );
    await second.clock.advance(6000);
    expect([reports, reconciler.pending]).toEqual([[], 1]);
    delete provider.faults.listFailure;
    await second.clock.advance(6000);
    await settle();
    expect([reports, second.errors, reconciler.pending]).toEqual([[1], [], 0]);
    expect((await second.open(id).exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
    expect(await rejection(second.rebuilds.rebuild(second.owner, crypto.randomUUID()))).toMatchObject({
      code: "not_found",
    });
  });
});
