import { mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { machineProcesses, tracesOf } from "../host/testing/machine-traces.ts";
import { shared } from "../host/testing/shared.ts";
import { ApiClient } from "./api/api-client.ts";
import { createDoubleFixture } from "./testing/fixture.ts";

const fixture = await shared(createDoubleFixture());

const traces = (id: SandboxId) => tracesOf(id, fixture.stateDirectory);
const instance = (id: SandboxId) => join(fixture.stateDirectory, "firecracker/instances", id);

describe("the Firecracker provider", () => {
  it("reports a crash with the console output when only the Firecracker process is killed", async () => {
    const sandbox = await fixture.create();
    // The first process is the double itself; its guest started later.
    const [pid = 0] = (await machineProcesses(sandbox.id)).toSorted((one, other) => one - other);
    process.kill(pid, "SIGKILL");
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      // The guest's console, without Firecracker's start-up log.
      message: expect.stringMatching(/^(?!.*Running Firecracker).*the guest of the double boots/s),
    });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("reports a crash when Firecracker hangs", async () => {
    const clock = new FakeClock();
    const sandbox = await Sandbox.create(fixture.newProvider({ clock }), fixture.config);
    for (const pid of await machineProcesses(sandbox.id)) process.kill(pid, "SIGSTOP");
    await clock.advance(60_000);
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: expect.stringContaining("did not answer"),
    });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("leaves nothing of a sandbox that does not start, and reports Firecracker's error", async () => {
    const id = createSandboxId();
    const kernel = join(fixture.stateDirectory, "no-kernel");
    await writeFile(kernel, "text");
    const creation = Sandbox.create(fixture.provider, { ...fixture.config, kernel }, { id });
    await expect(creation).rejects.toMatchObject({ reason: "unusable_kernel" });
    const many = Sandbox.create(fixture.provider, { ...fixture.config, vcpuCount: 64 }, { id });
    await expect(many).rejects.toMatchObject({
      reason: "firecracker_refused",
      message: expect.stringContaining("vcpu_count"),
    });
    expect(await traces(id)).toEqual([]);
  });

  it("removes a sandbox after the Firecracker program was uninstalled", async () => {
    const sandbox = await fixture.create();
    const bare = fixture.newProvider({ environment: { PATH: "/nonexistent", XDG_CACHE_HOME: "/nonexistent" } });
    expect((await bare.probe()).available).toBe(false);
    expect((await bare.list()).map(({ id }) => id)).toContain(sandbox.id);
    await bare.remove(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "destroyed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });
});

describe("a Firecracker machine", () => {
  it.each(["console.log", "machine/machine.log"])("truncates %s when it grows over its limit", async (name) => {
    const clock = new FakeClock();
    const sandbox = await Sandbox.create(fixture.newProvider({ clock }), fixture.config);
    const path = join(instance(sandbox.id), name);
    await writeFile(path, Buffer.alloc(2 ** 20 + 1), { flag: "a" });
    await clock.advance(5_000);
    await expect.poll(async () => (await stat(path)).size).toBe(0);
    await sandbox.destroy();
  });

  it("is adopted with its processes although its program died while it was paused for a checkpoint", async () => {
    const program = fixture.startProgram({ command: "sleep 600" });
    const { id, process: kept } = await program.ready();
    await program.kill();
    await new ApiClient(join(instance(id), "machine/api.sock")).send("PATCH /vm", { state: "Paused" });
    await using sandbox = await Sandbox.adopt(fixture.newProvider(), id);
    expect((await sandbox.exec("echo awake")).stdout).toBe("awake\n");
    expect((await sandbox.processes()).map((each) => each.id)).toContain(kept);
  });
});

describe("a Firecracker checkpoint", () => {
  it("can be deleted once it is restored, and gives the restored machine a new identity and the current time", async () => {
    const directory = join(fixture.stateDirectory, "saved");
    await mkdir(directory);
    const sandbox = await fixture.create();
    await sandbox.exec("echo kept > kept");
    await sandbox.checkpoint(directory, { keepsRunning: false });
    await sandbox.destroy();
    const id = createSandboxId();
    const prepared = await Sandbox.prepare(fixture.provider, sandbox.config, { id });
    const before = Date.now();
    await using restored = await Sandbox.restore(fixture.provider, sandbox.config, {
      prepared,
      directory,
      createdAt: sandbox.createdAt,
    });
    // The jail holds a hard link to the saved memory file.
    const memory = join(instance(id), "machine/snapshot/memory");
    expect((await stat(memory)).ino).toBe((await stat(join(directory, "memory"))).ino);
    await rm(directory, { recursive: true });
    expect((await restored.exec("cat kept")).stdout).toBe("kept\n");
    const received = await restored.exec("cat /run/sandpiper/instance", { user: "root" });
    expect(received.stdout).toMatch(/^seed [0-9a-f]{128}$/m);
    expect(received.stdout).toContain(`hostname sandbox-${id.slice(0, 8)}\n`);
    const time = Number(/^time (\d+)$/m.exec(received.stdout)?.[1]);
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  });
});
