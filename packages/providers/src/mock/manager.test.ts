import { type ManagerConfigOptions, type ManagerDependencies, Sandbox, SandboxManager } from "@sandpiper/core";
import { FakeClock, rejection, settle } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { MockFaults } from "./faults.ts";
import { MockProvider } from "./provider.ts";

function setUp(config: ManagerConfigOptions = {}, faults: MockFaults = {}, dependencies: ManagerDependencies = {}) {
  const clock = new FakeClock();
  const provider = new MockProvider({ clock, faults });
  const manager = new SandboxManager(provider, config, { clock, ...dependencies });
  return { clock, provider, manager };
}

describe("the sandbox limit", () => {
  it("holds while boots are slow: of 100 concurrent creates exactly 50 succeed and the others fail at once", async () => {
    const { clock, provider, manager } = setUp({ maxSandboxes: 50 }, { bootDelayMs: 1000 });
    const refused: unknown[] = [];
    const creations = Array.from({ length: 100 }, () => manager.create().catch((error) => void refused.push(error)));
    await settle();
    expect(refused).toHaveLength(50);
    for (const error of refused) expect(error).toMatchObject({ code: "resource_exhausted", reason: "sandbox_limit" });
    expect(manager.count).toBe(0);
    await clock.advance(1000);
    await Promise.all(creations);
    expect(manager.count).toBe(50);
    expect(provider.size).toBe(50);
  });

  it("frees a slot after a failed boot and after a destroy", async () => {
    const { clock, provider, manager } = setUp({ maxSandboxes: 1 }, { refusedConnects: 1000 });
    const failing = rejection(manager.create());
    expect(await rejection(manager.create())).toMatchObject({ reason: "sandbox_limit" });
    await clock.advance(10_000);
    expect(await failing).toMatchObject({ reason: "agent_timeout" });
    expect(provider.size).toBe(0);
    provider.faults.refusedConnects = 0;
    const sandbox = await manager.create();
    expect(await rejection(manager.create())).toMatchObject({ reason: "sandbox_limit" });
    await manager.destroy(sandbox.id);
    await manager.create();
  });

  it("is 100 by default, and unlimited with 0", async () => {
    const { manager } = setUp();
    expect(manager.config.maxSandboxes).toBe(100);
    const unlimited = setUp({ maxSandboxes: 0 });
    await Promise.all(Array.from({ length: 120 }, () => unlimited.manager.create()));
    expect(unlimited.manager.count).toBe(120);
  });

  it("counts a sandbox until it is completely destroyed", async () => {
    const { clock, provider, manager } = setUp({ maxSandboxes: 1 });
    const { id } = await manager.create();
    provider.faults.destroyDelayMs = 1000;
    const destroying = manager.destroy(id);
    await settle();
    expect(await rejection(manager.create())).toMatchObject({ reason: "sandbox_limit" });
    await clock.advance(1000);
    await destroying;
    await manager.create();
  });
});

describe("the registry", () => {
  it("is not blocked by a slow command", async () => {
    const { clock, manager } = setUp();
    const busy = await manager.create();
    const slow = manager.execute(busy.id, "sleep 60");
    await settle();
    const other = await manager.create();
    expect((await manager.execute(other.id, "echo quick")).stdout).toBe("quick\n");
    await manager.destroy(other.id);
    await clock.advance(60_000);
    expect((await slow).exitCode).toBe(0);
  });

  it("finds, lists, counts and removes sandboxes", async () => {
    const { manager } = setUp();
    const [one, two] = [await manager.create(), await manager.createDefault()];
    expect(manager.get(one.id)).toBe(one);
    expect(manager.exists(two.id)).toBe(true);
    expect(manager.list()).toEqual([one.id, two.id]);
    expect(manager.count).toBe(2);
    await manager.destroy(one.id);
    expect(manager.exists(one.id)).toBe(false);
    expect(() => manager.get(one.id)).toThrow("not found");
    expect(await rejection(manager.destroy(one.id))).toMatchObject({ code: "not_found", reason: "no_such_sandbox" });
    expect(await rejection(manager.execute(createSandboxId(), "true"))).toMatchObject({ code: "not_found" });
  });

  it("refuses an id that is taken", async () => {
    const { provider, manager } = setUp();
    const { id } = await manager.create();
    expect(await rejection(manager.create({}, { id }))).toMatchObject({ code: "already_exists" });
    expect(provider.size).toBe(1);
  });

  it("operates on sandboxes by id", async () => {
    const { manager } = setUp();
    const { id } = await manager.create();
    await manager.writeFile(id, "a.txt", "text");
    expect(new TextDecoder().decode(await manager.readFile(id, "a.txt"))).toBe("text");
    expect(await manager.listDir(id, ".")).toMatchObject([{ name: "a.txt", sizeBytes: 4 }]);
    expect((await manager.execute(id, "cat a.txt")).stdout).toBe("text");
    expect((await manager.executeCode(id, { language: "sh", code: "echo code" })).stdout).toBe("code\n");
    expect(await manager.withSandbox(id, (sandbox) => sandbox.id)).toBe(id);
  });

  it("assigns vsock addresses from 3 upward, each once", async () => {
    const { clock, provider, manager } = setUp();
    const first = await manager.create();
    await manager.destroy(first.id);
    provider.faults.refusedConnects = 1000;
    const failing = rejection(manager.create({ vsockCid: 3 }));
    await clock.advance(10_000);
    await failing;
    provider.faults.refusedConnects = 0;
    const third = await manager.create({ vsockCid: 3 });
    expect([first.config.vsockCid, third.config.vsockCid]).toEqual([3, 5]);
  });

  it("frees the slot of a crashed sandbox, removes its leftovers and remembers the reason", async () => {
    const { clock, provider, manager } = setUp({ maxSandboxes: 1 });
    const { id } = await manager.create();
    provider.instance(id).runOutOfMemory();
    await clock.advance(10);
    expect(manager.exists(id)).toBe(false);
    expect(provider.size).toBe(0);
    expect(await rejection(manager.execute(id, "true"))).toMatchObject({
      code: "gone",
      reason: "out_of_memory",
    });
    await manager.create();
  });

  it("reports a crashed sandbox that cannot be cleaned up", async () => {
    const errors: string[] = [];
    const { clock, provider, manager } = setUp(
      {},
      {},
      { onError: (error, id) => errors.push(`${id} ${error.reason}`) },
    );
    const { id } = await manager.create();
    provider.faults.failedDestroys = 1;
    provider.instance(id).crash();
    await clock.advance(10);
    expect(errors).toEqual([`${id} mock_fault`]);
    expect(manager.exists(id)).toBe(false);
  });

  it("keeps a sandbox that could not be destroyed, so that the caller can try again", async () => {
    const { provider, manager } = setUp({}, { failedDestroys: 1 });
    const { id } = await manager.create();
    expect(await rejection(manager.destroy(id))).toMatchObject({ reason: "mock_fault" });
    expect(manager.exists(id)).toBe(true);
    await manager.destroy(id);
    expect(provider.size).toBe(0);
  });
});

describe("configuration", () => {
  it("merges a sandbox's options with the manager's defaults and paths", async () => {
    const { manager } = setUp({
      kernelPath: "/boot/vmlinux",
      rootfsPath: "/images/base",
      imagesDir: "/images",
      defaults: { memoryMib: 512, env: { A: "1", B: "1" } },
    });
    expect((await manager.createDefault()).config).toMatchObject({
      kernel: "/boot/vmlinux",
      rootfs: "/images/base",
      memoryMib: 512,
    });
    const own = await manager.create({ memoryMib: 64, rootfs: "python", env: { B: "2" } });
    expect(own.config).toMatchObject({ memoryMib: 64, rootfs: "/images/python", env: { A: "1", B: "2" } });
    expect(["python", "python:3", "/a", "host"].map((image) => manager.imagePath(image))).toEqual([
      "/images/python",
      "/images/python:3",
      "/a",
      "host",
    ]);
  });

  it("refuses an image name without an images directory", async () => {
    const { manager } = setUp();
    expect(await rejection(manager.create({ rootfs: "python" }))).toMatchObject({ reason: "unusable_image" });
  });

  it.each([
    [{ maxSandboxes: -1 }],
    [{ kernelPath: "relative" }],
    [{ maxSandbox: 3 }],
    [{ defaults: { memoryMib: 0 } }],
  ])("is validated immediately: %j", (config) => {
    expect(() => setUp(config as ManagerConfigOptions)).toThrow(/^invalid (manager|sandbox) config/);
  });
});

describe("register", () => {
  it("registers a sandbox that was created elsewhere", async () => {
    const { clock, provider, manager } = setUp();
    const sandbox = await Sandbox.create(provider, { vsockCid: 40 }, { clock });
    expect(manager.register(sandbox)).toEqual({ ok: true, id: sandbox.id });
    expect(manager.get(sandbox.id)).toBe(sandbox);
    expect((await manager.create()).config.vsockCid).toBe(41);
  });

  it("returns a refused sandbox unchanged", async () => {
    const { clock, provider, manager } = setUp({ maxSandboxes: 1 });
    const first = await manager.create();
    expect(manager.register(first)).toMatchObject({ ok: false, error: { code: "already_exists" }, sandbox: first });
    const second = await Sandbox.create(provider, {}, { clock });
    expect(manager.register(second)).toMatchObject({ ok: false, error: { reason: "sandbox_limit" }, sandbox: second });
    expect((await second.exec("echo fine")).stdout).toBe("fine\n");
    const gone = second.destroy();
    await clock.advance(1);
    await gone;
    expect(manager.register(second)).toMatchObject({ ok: false, error: { reason: "invalid_state" } });
  });
});

describe("closing the manager", () => {
  it("destroys all sandboxes, continues after failures and reports them", async () => {
    const { clock, provider, manager } = setUp();
    const ids = (await Promise.all(Array.from({ length: 5 }, () => manager.create()))).map(({ id }) => id);
    provider.faults.failedDestroys = 1;
    provider.faults.destroyDelayMs = 100;
    const ending = manager.destroyAll();
    await clock.advance(100);
    const { destroyed, failed } = await ending;
    expect(destroyed).toHaveLength(4);
    expect(failed).toMatchObject([{ error: { reason: "mock_fault" } }]);
    expect(new Set([...destroyed, ...failed.map(({ id }) => id)])).toEqual(new Set(ids));
    expect(manager.list()).toEqual(failed.map(({ id }) => id));
  });

  it("stops creations in progress", async () => {
    const { clock, provider, manager } = setUp({}, { bootDelayMs: 1000 });
    const creating = rejection(manager.create());
    await clock.advance(500);
    const ending = manager.destroyAll();
    await clock.advance(1);
    await ending;
    expect(await creating).toMatchObject({ code: "canceled", reason: "destroy_all" });
    expect(provider.size).toBe(0);
  });

  it("leaves nothing and refuses new sandboxes", async () => {
    const { provider, manager } = setUp();
    await manager.create();
    await manager[Symbol.asyncDispose]();
    expect(provider.size).toBe(0);
    expect(await rejection(manager.create())).toMatchObject({ reason: "manager_closed" });
  });

  it("reports what it could not remove", async () => {
    const { manager } = setUp({}, { failedDestroys: 1 });
    const { id } = await manager.create();
    const error = await rejection(manager[Symbol.asyncDispose]());
    expect(error).toMatchObject({ reason: "cleanup_failed", details: { ids: [id] } });
  });
});

describe("reconcile", () => {
  async function leftBehind() {
    const clock = new FakeClock();
    const first = new MockProvider({ clock });
    const earlier = new SandboxManager(first, {}, { clock });
    const running = await earlier.create({ name: "kept" });
    const process = await running.start("cat", { stdin: true });
    const dead = await Sandbox.create(first, {}, { clock });
    first.instance(dead.id).crash();
    await clock.advance(1);
    const provider = first.die();
    await clock.advance(2000);
    return { clock, provider, running, process, dead };
  }

  it("adopts running instances with their processes, and removes the others", async () => {
    const { clock, provider, running, process, dead } = await leftBehind();
    const manager = new SandboxManager(provider, {}, { clock });
    const own = await manager.create();
    expect(await manager.reconcile({ orphans: "adopt" })).toEqual({
      adopted: [running.id],
      destroyed: [dead.id],
      owned: [],
      failed: [],
    });
    const adopted = manager.get(running.id);
    expect(adopted.config.name).toBe("kept");
    const again = await adopted.attach(process.id);
    await again.write("still here");
    await again.closeStdin();
    expect((await again.wait()).exitCode).toBe(0);
    expect(manager.list()).toEqual([own.id, running.id]);
    expect((await manager.create()).config.vsockCid).toBe(4);
  });

  it("destroys every orphan on request, and leaves the instances of other programs alone", async () => {
    const { clock, provider, running, dead } = await leftBehind();
    const foreign = await Sandbox.create(provider, {}, { clock });
    const manager = new SandboxManager(provider, {}, { clock });
    const result = await manager.reconcile({ orphans: "destroy" });
    expect(new Set(result.destroyed)).toEqual(new Set([running.id, dead.id]));
    expect(result).toMatchObject({ adopted: [], owned: [foreign.id], failed: [] });
    expect(provider.size).toBe(1);
  });

  it("reports what it cannot adopt and continues", async () => {
    const { clock, provider, running, dead } = await leftBehind();
    const manager = new SandboxManager(provider, { maxSandboxes: 1 }, { clock });
    await manager.create();
    const result = await manager.reconcile({ orphans: "adopt" });
    expect(result).toMatchObject({ adopted: [], destroyed: [dead.id] });
    expect(result.failed).toMatchObject([{ id: running.id, error: { reason: "sandbox_limit" } }]);
  });
});
