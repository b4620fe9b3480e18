import { describe, expect, it } from "vitest";
import { SandboxError } from "../sandbox-error.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { FakeVmDriver } from "../testing/fake-vms.ts";
import { rejection } from "../testing/rejection.ts";
import { DEFAULT_VM_IDLE_MS, ProjectVms } from "./project-vms.ts";

const resources = { memoryMib: 512, vcpuCount: 2, diskMib: 4096 };

function create(idleMs?: number) {
  const driver = new FakeVmDriver();
  const clock = new FakeClock();
  return { driver, clock, vms: new ProjectVms({ driver, resources, idleMs, clock }) };
}

describe("machines of projects", () => {
  it("are one for each project, however many ask at once, with the resources that were set", async () => {
    const { driver, vms } = create();
    const [one, two, other] = await Promise.all([
      vms.getOrCreateVm("shop", "a"),
      vms.getOrCreateVm("shop", "b"),
      vms.getOrCreateVm("blog", "c"),
    ]);
    expect(two).toBe(one);
    expect(other).not.toBe(one);
    expect(await vms.getOrCreateVm("shop", "d")).toBe(one);
    expect(driver.starts).toHaveLength(2);
    expect(driver.starts[0]?.resources).toEqual(resources);
    expect(vms.list()).toMatchObject([
      { projectId: "shop", state: "ready", sessions: ["a", "b", "d"], consoleLog: "/vm-1.log" },
      { projectId: "blog", state: "ready", sessions: ["c"] },
    ]);
  });

  it("say that they could not start to all who wait, keep the reason, and are tried again", async () => {
    const { driver, vms } = create();
    driver.startError = new SandboxError("unavailable", { reason: "no_room", message: "no room" });
    const outcomes = await Promise.allSettled([vms.getOrCreateVm("shop", "a"), vms.getOrCreateVm("shop", "b")]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: { reason: "no_room" } });
    expect(vms.list()).toMatchObject([{ state: "error", sessions: [], error: { reason: "no_room" } }]);
    await vms.getOrCreateVm("shop", "a");
    expect(vms.list()).toMatchObject([{ state: "ready", sessions: ["a"], error: undefined }]);
  });

  it("are starting until their driver says otherwise", async () => {
    const { driver, vms } = create();
    const gate = Promise.withResolvers<void>();
    driver.gate = gate.promise;
    const asked = vms.getOrCreateVm("shop", "a");
    await Promise.resolve();
    expect(vms.list()).toMatchObject([{ state: "starting" }]);
    gate.resolve();
    await asked;
    expect(vms.list()).toMatchObject([{ state: "ready" }]);
  });

  it("stop half an hour after their last session, and start anew for the next one", async () => {
    const { driver, clock, vms } = create();
    await vms.getOrCreateVm("shop", "a");
    await vms.getOrCreateVm("shop", "b");
    await vms.releaseVm("shop", "a");
    await clock.advance(2 * DEFAULT_VM_IDLE_MS);
    expect(vms.list()).toMatchObject([{ state: "ready" }]);
    await vms.releaseVm("shop", "b");
    await clock.advance(DEFAULT_VM_IDLE_MS - 1);
    expect(driver.started[0]?.isDestroyed).toBe(false);
    await clock.advance(1);
    expect(driver.started[0]?.isDestroyed).toBe(true);
    expect(vms.list()).toMatchObject([{ state: "stopped" }]);
    expect((await vms.getOrCreateVm("shop", "c")).id).toBe("vm-2");
  });

  it("go on when a session comes before their idle time is over", async () => {
    const { driver, clock, vms } = create(1000);
    await vms.getOrCreateVm("shop", "a");
    await vms.releaseVm("shop", "a");
    await clock.advance(999);
    await vms.getOrCreateVm("shop", "b");
    await clock.advance(10_000);
    expect(driver.started[0]?.isDestroyed).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it("end with their last session when they have no idle time, and whoever releases it waits for that", async () => {
    const { driver, vms } = create(0);
    await vms.getOrCreateVm("shop", "a");
    await vms.releaseVm("shop", "a");
    expect(driver.started[0]?.isDestroyed).toBe(true);
  });

  it("idle after a start that nobody waited for to its end", async () => {
    const { driver, clock, vms } = create(1000);
    const gate = Promise.withResolvers<void>();
    driver.gate = gate.promise;
    const caller = new AbortController();
    const asked = vms.getOrCreateVm("shop", "a", { signal: caller.signal });
    caller.abort();
    expect(await rejection(asked)).toMatchObject({ code: "canceled" });
    gate.resolve();
    await clock.advance(1000);
    expect(driver.started[0]?.isDestroyed).toBe(true);
  });

  it("that end by themselves are told of, and the next session gets a new one", async () => {
    const { driver, clock, vms } = create();
    await vms.getOrCreateVm("shop", "a");
    driver.started[0]?.crash("QEMU was killed");
    await clock.advance(0);
    const [info] = vms.list();
    expect(info).toMatchObject({ state: "error", sessions: [], error: { reason: "machine_ended" } });
    expect(info?.error?.message).toContain("QEMU was killed");
    expect((await vms.getOrCreateVm("shop", "b")).id).toBe("vm-2");
    expect(driver.started[0]?.isDestroyed).toBe(true);
  });

  it("that cannot be ended say so, and are ended before another one starts", async () => {
    const { driver, vms } = create(0);
    await vms.getOrCreateVm("shop", "a");
    const [vm] = driver.started;
    if (vm !== undefined) vm.destroyError = new Error("busy");
    expect(await rejection(vms.releaseVm("shop", "a"))).toMatchObject({ message: "busy" });
    expect(vms.list()).toMatchObject([{ state: "error" }]);
    await vms.getOrCreateVm("shop", "b");
    expect(vm?.isDestroyed).toBe(true);
  });
});

describe("removing a project's machine", () => {
  it("ends it while it is used, and forgets it", async () => {
    const { driver, vms } = create();
    await vms.getOrCreateVm("shop", "a");
    await vms.removeVm("shop");
    expect(await driver.started[0]?.exited).toMatchObject({ reason: "destroyed" });
    expect(vms.list()).toEqual([]);
    await vms.removeVm("unknown");
  });

  it("leaves no session behind that would keep the next machine", async () => {
    const { driver, clock, vms } = create(1000);
    await vms.getOrCreateVm("shop", "a");
    const removing = vms.removeVm("shop");
    const late = await vms.getOrCreateVm("shop", "b");
    await removing;
    expect(await late.exited).toMatchObject({ reason: "destroyed" });
    await vms.getOrCreateVm("shop", "c");
    await vms.releaseVm("shop", "c");
    await clock.advance(1000);
    expect(driver.started.every(({ isDestroyed }) => isDestroyed)).toBe(true);
  });

  it("ends a start under way, and tells who waits for it", async () => {
    const { driver, vms } = create();
    driver.gate = new Promise(() => {});
    const asked = rejection(vms.getOrCreateVm("shop", "a"));
    await Promise.resolve();
    await vms.removeVm("shop");
    expect(await asked).toMatchObject({ reason: "machine_removed" });
    expect(vms.list()).toEqual([]);
  });
});

describe("machines of a program that has ended", () => {
  it("are taken over with their sessions; what does not run or answer is removed, what another program took is left to it", async () => {
    const { driver, clock, vms } = create(1000);
    driver.orphans = [
      { id: "of-shop", projectId: "shop", isRunning: true },
      { id: "second", projectId: "shop", isRunning: true },
      { id: "of-blog", projectId: "blog", isRunning: true },
      { id: "dead", projectId: "wiki", isRunning: false },
      { id: "mute", projectId: "docs", isRunning: true },
      { id: "claimed", projectId: "mail", isRunning: true },
    ];
    await vms.reconcile(async ({ projectId }) => (projectId === "shop" ? ["a"] : []));
    expect(driver.removed.sort()).toEqual(["dead", "mute", "second"]);
    expect((await vms.getOrCreateVm("shop", "b")).id).toBe("of-shop");
    expect(vms.list().find(({ projectId }) => projectId === "shop")?.sessions).toEqual(["a", "b"]);
    // One that nobody uses is idle from the start.
    await clock.advance(1000);
    expect(driver.adopted.find(({ id }) => id === "of-blog")?.isDestroyed).toBe(true);
    expect(driver.adopted.find(({ id }) => id === "of-shop")?.isDestroyed).toBe(false);
  });
});

describe("shutting down", () => {
  it("waits until all machines have ended, also those that start, and starts no more", async () => {
    const { driver, vms } = create();
    await vms.getOrCreateVm("shop", "a");
    driver.gate = new Promise(() => {});
    const starting = rejection(vms.getOrCreateVm("blog", "b"));
    await vms.shutdown();
    expect(driver.started.every(({ isDestroyed }) => isDestroyed)).toBe(true);
    expect(await starting).toMatchObject({ reason: "machine_removed" });
    expect(await rejection(vms.getOrCreateVm("shop", "c"))).toMatchObject({ reason: "machines_shut_down" });
  });
});
