import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QemuProvider } from "./provider.ts";
import { createQemuFixture, type QemuFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";
import { crashMachine, machineProcesses, tracesOf } from "./testing/traces.ts";

let fixture: QemuFixture;
beforeAll(async () => {
  fixture = await createQemuFixture();
  await (await fixture.create()).destroy();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const traces = (id: SandboxId) => tracesOf(id, fixture.stateDirectory);
const nursery = () => readdir(join(fixture.stateDirectory, "qemu/transient"));
/** A busy machine takes its time. */
const successor = () => new QemuProvider({ stateDirectory: fixture.stateDirectory });

describe("nothing is left", () => {
  it("of a sandbox that was destroyed, though there was much of it before", async () => {
    const sandbox = await fixture.create();
    const before = await traces(sandbox.id);
    for (const kind of [/^process /, /^\/sys\/fs\/cgroup\//, /\/qemu\/instances\//]) {
      expect(before.filter((trace) => kind.test(trace))).not.toEqual([]);
    }
    await Promise.all([sandbox.destroy(), sandbox.destroy()]);
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox that was removed by its id, and its owner learns that it was meant", async () => {
    const sandbox = await fixture.create();
    await successor().remove(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "destroyed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose QEMU hangs, and its owner is told", async () => {
    const clock = new FakeClock();
    const provider = new QemuProvider({ stateDirectory: fixture.stateDirectory, clock });
    const sandbox = await Sandbox.create(provider, fixture.config);
    for (const pid of await machineProcesses(sandbox.id)) process.kill(pid, "SIGSTOP");
    await clock.advance(60_000);
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: expect.stringContaining("did not answer"),
    });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose guest hangs while QEMU runs on, and its owner is told", async () => {
    const clock = new FakeClock();
    const provider = new QemuProvider({ stateDirectory: fixture.stateDirectory, clock });
    // With Debian's kernel, which has cgroups.
    const sandbox = await Sandbox.create(provider, { ...fixture.config, vcpuCount: 2 });
    // In steps, each of which leaves the time to answer to what can.
    const twoMinutes = async (answer: () => Promise<unknown>) => {
      for (let step = 0; step < 24; step++) {
        await clock.advance(5_000);
        await answer();
      }
    };
    await twoMinutes(() => sandbox.exec("true"));
    expect(sandbox.state).toBe("ready");
    // Somebody with root inside brings the agent to a stop.
    const freeze = [
      "mkdir /tmp/all && mount -t cgroup2 none /tmp/all && mkdir /tmp/all/ice",
      "echo 1 > /tmp/all/ice/cgroup.procs && echo 1 > /tmp/all/ice/cgroup.freeze",
    ];
    await sandbox.start(freeze.join(" && "), { user: "root" });
    await expect.poll(() => sandbox.isHealthy({ timeoutMs: 1000 })).toBe(false);
    await twoMinutes(() => sleep(100));
    const exit = { reason: "crashed", message: expect.stringContaining("its guest did not answer") };
    expect(await sandbox.closed).toMatchObject(exit);
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose program and whose QEMU were both killed", async () => {
    const program = startHostProgram({ fixture });
    const { id } = await program.ready();
    await program.kill();
    await crashMachine(id);
    const next = successor();
    await expect.poll(async () => (await next.list()).find((record) => record.id === id)?.isRunning).toBe(false);
    await expect(next.adopt(id)).rejects.toMatchObject({ reason: "instance_ended" });
    await next.remove(id);
    expect(await traces(id)).toEqual([]);
  });

  it("of a sandbox whose program was killed while it made it", async () => {
    const program = startHostProgram({ fixture });
    const id = await program.creating();
    await expect.poll(() => traces(id)).not.toEqual([]);
    await program.kill();
    const next = successor();
    await next.list();
    await next.remove(id);
    expect(await traces(id)).toEqual([]);
  });

  it("of a template whose program was killed while it booted, and the next program makes it", async () => {
    const config = { memoryMib: 160 };
    const program = startHostProgram({ fixture, config });
    await program.creating();
    await expect.poll(nursery).toHaveLength(1);
    const [name = ""] = (await nursery()).map((entry) => entry.slice(0, entry.indexOf("~")));
    await expect.poll(() => machineProcesses(name)).not.toEqual([]);
    await program.kill();
    await successor().list();
    expect(await nursery()).toEqual([]);
    expect(await traces(name as SandboxId)).toEqual([]);
    await using sandbox = await fixture.create(config);
    expect((await sandbox.exec("echo fine")).stdout).toBe("fine\n");
  });

  it("of a sandbox that did not start, and the error says why", async () => {
    const id = createSandboxId();
    const creation = Sandbox.create(fixture.provider, { ...fixture.config, kernel: "/etc/hostname" }, { id });
    await expect(creation).rejects.toMatchObject({ reason: "boot_failed" });
    expect(await traces(id)).toEqual([]);
    expect(await nursery()).toEqual([]);
  });
});

describe("machines that were started ahead", () => {
  it("become sandboxes of the id that is asked for, and the rest end with their provider", async () => {
    const provider = new QemuProvider({ stateDirectory: fixture.stateDirectory, prepared: 1 });
    const seen = new Set<string>();
    try {
      // One that is not ready yet is not waited for.
      const takesOne = async () => {
        for (const name of await nursery()) seen.add(name.slice(0, name.indexOf("~")));
        await using sandbox = await Sandbox.create(provider, fixture.config);
        const hostname = (await sandbox.exec("hostname")).stdout.trim();
        expect(await provider.list()).toContainEqual(expect.objectContaining({ id: sandbox.id, isRunning: true }));
        return [...seen].some((name) => hostname === `sandbox-${name.slice(0, 8)}`);
      };
      await expect.poll(takesOne, { interval: 500 }).toBe(true);
    } finally {
      await provider[Symbol.asyncDispose]();
    }
    expect(await nursery()).toEqual([]);
    for (const name of seen) expect(await traces(name as SandboxId)).toEqual([]);
  });

  it("are ended by the next program when their own was killed", async () => {
    const program = startHostProgram({ fixture, provider: { prepared: 1 } });
    const { id } = await program.ready();
    const spares = async () => (await nursery()).map((name) => name.slice(0, name.indexOf("~")));
    const processes = async () => (await Promise.all((await spares()).map(machineProcesses))).flat();
    await expect.poll(processes).toHaveLength(1);
    const [spare = ""] = await spares();
    await program.kill();
    await successor().list();
    expect(await nursery()).toEqual([]);
    expect(await traces(spare as SandboxId)).toEqual([]);
    await successor().remove(id);
  });
});
