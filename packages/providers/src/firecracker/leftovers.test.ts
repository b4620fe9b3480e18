import { mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { crashMachine, machineProcesses, tracesOf } from "../host/testing/machine-traces.ts";
import { FirecrackerProvider } from "./provider.ts";
import { createDoubleFixture, type FirecrackerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

let fixture: FirecrackerFixture;
beforeAll(async () => {
  fixture = await createDoubleFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const traces = (id: SandboxId) => tracesOf(id, fixture.options.stateDirectory);
const instance = (id: SandboxId) => join(fixture.options.stateDirectory, "firecracker/instances", id);
const successor = () => new FirecrackerProvider(fixture.options);
/** A busy machine takes its time. */

describe("nothing is left", () => {
  it("of a sandbox that was destroyed, though there was much of it before", async () => {
    const sandbox = await fixture.create();
    const before = await traces(sandbox.id);
    for (const kind of [/^process /, /^\/sys\/fs\/cgroup\//, /\/firecracker\/instances\//]) {
      expect(before.filter((trace) => kind.test(trace))).not.toEqual([]);
    }
    await Promise.all([sandbox.destroy(), sandbox.destroy()]);
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose Firecracker alone was killed, and its owner is told that it crashed", async () => {
    const sandbox = await fixture.create();
    // The first of them: what the double runs for a guest came later.
    const [pid = 0] = (await machineProcesses(sandbox.id)).toSorted((one, other) => one - other);
    process.kill(pid, "SIGKILL");
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: expect.stringContaining("the guest of the double boots"),
    });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose Firecracker hangs, and its owner is told", async () => {
    const clock = new FakeClock();
    const sandbox = await Sandbox.create(new FirecrackerProvider({ ...fixture.options, clock }), fixture.config);
    for (const pid of await machineProcesses(sandbox.id)) process.kill(pid, "SIGSTOP");
    await clock.advance(60_000);
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: expect.stringContaining("did not answer"),
    });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose program and whose Firecracker were both killed", async () => {
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

  it("of a sandbox whose program was killed while it was made", async () => {
    const program = startHostProgram({ fixture });
    const id = await program.creating();
    await expect.poll(() => traces(id)).not.toEqual([]);
    await program.kill();
    const next = successor();
    await next.remove(id);
    await next.list();
    expect(await traces(id)).toEqual([]);
  });

  it("of a sandbox that did not start, and the error says why in Firecracker's words", async () => {
    const id = createSandboxId();
    const kernel = join(fixture.options.stateDirectory, "no-kernel");
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

  it("of a sandbox that is removed after Firecracker itself is gone from the host", async () => {
    const sandbox = await fixture.create();
    const bare = new FirecrackerProvider({
      stateDirectory: fixture.options.stateDirectory,
      environment: { PATH: "/nonexistent", XDG_CACHE_HOME: "/nonexistent" },
    });
    expect((await bare.probe()).available).toBe(false);
    expect((await bare.list()).map(({ id }) => id)).toContain(sandbox.id);
    await bare.remove(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "destroyed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });
});

describe("the console of a machine", () => {
  it("takes no more than its share of the disk, however much a guest writes", async () => {
    const clock = new FakeClock();
    const sandbox = await Sandbox.create(new FirecrackerProvider({ ...fixture.options, clock }), fixture.config);
    const path = join(instance(sandbox.id), "console.log");
    await writeFile(path, Buffer.alloc(2 ** 20 + 1), { flag: "a" });
    await clock.advance(5_000);
    await expect.poll(async () => (await stat(path)).size).toBe(0);
    await sandbox.destroy();
  });
});

describe("what was saved", () => {
  it("is not needed any more once it was restored, and the restored machine is told who it is and what time it is", async () => {
    const directory = join(fixture.options.stateDirectory, "saved");
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
    // Its memory is read from the very file that was saved, which its jail keeps.
    const memory = join(instance(id), "machine/snapshot/memory");
    expect((await stat(memory)).ino).toBe((await stat(join(directory, "memory"))).ino);
    await rm(directory, { recursive: true });
    expect((await restored.exec("cat kept")).stdout).toBe("kept\n");
    const told = await restored.exec("cat /run/sandpiper/instance", { user: "root" });
    expect(told.stdout).toMatch(/^seed [0-9a-f]{128}$/m);
    expect(told.stdout).toContain(`hostname sandbox-${id.slice(0, 8)}\n`);
    const time = Number(/^time (\d+)$/m.exec(told.stdout)?.[1]);
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  });
});
