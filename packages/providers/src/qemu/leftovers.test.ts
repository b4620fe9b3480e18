import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { machineProcesses, tracesOf } from "../host/testing/machine-traces.ts";
import { shared } from "../host/testing/shared.ts";
import { createQemuFixture } from "./testing/fixture.ts";

const fixture = await shared(createQemuFixture());
// The first machine of a shape boots for long.
await (await fixture.create()).destroy();

const traces = (id: SandboxId) => tracesOf(id, fixture.stateDirectory);
const transientMachines = () => readdir(join(fixture.stateDirectory, "qemu/transient"));

describe("the QEMU provider", () => {
  it("reports a crash when QEMU hangs", async () => {
    const clock = new FakeClock();
    const provider = fixture.newProvider({ clock });
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

  it("reports a crash when the guest hangs while QEMU still answers", async () => {
    const clock = new FakeClock();
    const provider = fixture.newProvider({ clock });
    const sandbox = await Sandbox.create(provider, fixture.config);
    // In steps, so that an agent that runs can answer in between.
    const twoMinutes = async (answer: () => Promise<unknown>) => {
      for (let step = 0; step < 24; step++) {
        await clock.advance(5_000);
        await answer();
      }
    };
    await twoMinutes(() => sandbox.exec("true"));
    expect(sandbox.state).toBe("ready");
    // Root inside the guest freezes the agent.
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

  it("leaves nothing of a template whose program was killed during its boot, and boots it again", async () => {
    const config = { memoryMib: 160 };
    const program = fixture.startProgram({ config });
    await program.creating();
    await expect.poll(transientMachines).toHaveLength(1);
    const [name = ""] = (await transientMachines()).map((entry) => entry.slice(0, entry.indexOf("~")));
    await expect.poll(() => machineProcesses(name)).not.toEqual([]);
    await program.kill();
    await fixture.newProvider().list();
    expect(await transientMachines()).toEqual([]);
    expect(await traces(name as SandboxId)).toEqual([]);
    await using sandbox = await fixture.create(config);
    expect((await sandbox.exec("echo fine")).stdout).toBe("fine\n");
  });

  it("leaves nothing of a sandbox that does not start, and reports why", async () => {
    const id = createSandboxId();
    const creation = Sandbox.create(fixture.provider, { ...fixture.config, kernel: "/etc/hostname" }, { id });
    await expect(creation).rejects.toMatchObject({ reason: "boot_failed" });
    expect(await traces(id)).toEqual([]);
    expect(await transientMachines()).toEqual([]);
  });
});

describe("prepared machines", () => {
  it("become sandboxes of the requested id, and the unused ones end with their provider", async () => {
    const provider = fixture.newProvider({ prepared: 1 });
    const seen = new Set<string>();
    try {
      // The provider does not wait for a prepared machine that is still starting.
      const takesOne = async () => {
        for (const name of await transientMachines()) seen.add(name.slice(0, name.indexOf("~")));
        await using sandbox = await Sandbox.create(provider, fixture.config);
        const hostname = (await sandbox.exec("hostname")).stdout.trim();
        expect(await provider.list()).toContainEqual(expect.objectContaining({ id: sandbox.id, isRunning: true }));
        return [...seen].some((name) => hostname === `sandbox-${name.slice(0, 8)}`);
      };
      await expect.poll(takesOne, { interval: 500 }).toBe(true);
    } finally {
      await provider[Symbol.asyncDispose]();
    }
    expect(await transientMachines()).toEqual([]);
    for (const name of seen) expect(await traces(name as SandboxId)).toEqual([]);
  });

  it("are ended by the next program after their own was killed", async () => {
    const program = fixture.startProgram({}, { prepared: 1 });
    const { id } = await program.ready();
    const preparedNames = async () => (await transientMachines()).map((name) => name.slice(0, name.indexOf("~")));
    const processes = async () => (await Promise.all((await preparedNames()).map(machineProcesses))).flat();
    await expect.poll(processes).toHaveLength(1);
    const [prepared = ""] = await preparedNames();
    await program.kill();
    await fixture.newProvider().list();
    expect(await transientMachines()).toEqual([]);
    expect(await traces(prepared as SandboxId)).toEqual([]);
    await fixture.newProvider().remove(id);
  });
});
