import { SandboxError } from "@sandpiper/core";
import { FakeClock, rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { FakeVmDriver } from "../testing/fake-vms.ts";
import { DEFAULT_VM_IDLE_MS, ProjectVms } from "./project-vms.ts";

const resources = { memoryMib: 512, vcpuCount: 2, diskMib: 4096 };

function create(idleMs?: number) {
  const driver = new FakeVmDriver();
  const clock = new FakeClock();
  return { driver, clock, vms: new ProjectVms({ driver, resources, idleMs, clock }) };
}

describe("the machines of projects", () => {
  it("start one machine per project with the configured resources, however many callers ask at once", async () => {
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

  it("report a failed start to every waiting caller, keep the error, and start again on the next call", async () => {
    const { driver, vms } = create();
    driver.startError = SandboxError.fromFields({ code: "unavailable", reason: "no_room", message: "no room" });
    const outcomes = await Promise.allSettled([vms.getOrCreateVm("shop", "a"), vms.getOrCreateVm("shop", "b")]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: { reason: "no_room" } });
    expect(vms.list()).toMatchObject([{ state: "error", sessions: [], error: { reason: "no_room" } }]);
    await vms.getOrCreateVm("shop", "a");
    expect(vms.list()).toMatchObject([{ state: "ready", sessions: ["a"], error: undefined }]);
  });

  it("stay in state starting until the driver has started the machine", async () => {
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

  it("stop half an hour after the last session, and start a new machine for the next one", async () => {
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

  it("keep running when a session arrives within the idle time", async () => {
    const { driver, clock, vms } = create(1000);
    await vms.getOrCreateVm("shop", "a");
    await vms.releaseVm("shop", "a");
    await clock.advance(999);
    await vms.getOrCreateVm("shop", "b");
    await clock.advance(10_000);
    expect(driver.started[0]?.isDestroyed).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it("stop before the last release resolves when the idle time is 0", async () => {
    const { driver, vms } = create(0);
    await vms.getOrCreateVm("shop", "a");
    await vms.releaseVm("shop", "a");
    expect(driver.started[0]?.isDestroyed).toBe(true);
  });

  it("stop after the idle time when every caller canceled during the start", async () => {
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

  it("enter state error when a machine crashes, and start a new one for the next session", async () => {
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

  it("report a machine that fails to stop, and stop it before the next one starts", async () => {
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
  it("stops it while sessions use it, and drops it from the list", async () => {
    const { driver, vms } = create();
    await vms.getOrCreateVm("shop", "a");
    await vms.removeVm("shop");
    expect(await driver.started[0]?.exited).toMatchObject({ reason: "destroyed" });
    expect(vms.list()).toEqual([]);
    await vms.removeVm("unknown");
  });

  it("leaves no session that would keep the next machine running", async () => {
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

  it("cancels a start in progress, and rejects its callers", async () => {
    const { driver, vms } = create();
    driver.gate = new Promise(() => {});
    const asked = rejection(vms.getOrCreateVm("shop", "a"));
    await Promise.resolve();
    await vms.removeVm("shop");
    expect(await asked).toMatchObject({ reason: "machine_removed" });
    expect(vms.list()).toEqual([]);
  });
});

describe("the machines of a program that has ended", () => {
  it("are adopted with their sessions, removed if they do not answer, and left alone if another program adopted them", async () => {
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
    // A machine without sessions is idle from the start.
    await clock.advance(1000);
    expect(driver.adopted.find(({ id }) => id === "of-blog")?.isDestroyed).toBe(true);
    expect(driver.adopted.find(({ id }) => id === "of-shop")?.isDestroyed).toBe(false);
  });
});

describe("shutting down", () => {
  it("stops all machines, including those that are starting, and starts no more", async () => {
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
