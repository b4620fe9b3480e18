import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findRunsc } from "../host/find-runsc.ts";
import { GvisorProvider } from "./provider.ts";
import { createGvisorFixture, type GvisorFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";
import { crashSandbox, tracesOf } from "./testing/traces.ts";

let fixture: GvisorFixture;
beforeAll(async () => {
  fixture = await createGvisorFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const traces = (id: SandboxId) => tracesOf(id, fixture.stateDirectory);

describe("nothing is left", () => {
  it("of a sandbox that was destroyed, though there was much of it before", async () => {
    const sandbox = await fixture.create();
    const before = await traces(sandbox.id);
    for (const kind of [/^process /, /^\/sys\/fs\/cgroup\//, /\/gvisor\/instances\//, /\/gvisor\/root\//]) {
      expect(before.filter((trace) => kind.test(trace))).not.toEqual([]);
    }
    await Promise.all([sandbox.destroy(), sandbox.destroy()]);
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
    expect(await mountsBelow(fixture.stateDirectory)).toEqual([]);
  });

  it("of a sandbox whose processes were killed from outside", async () => {
    const sandbox = await fixture.create();
    await crashSandbox(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "crashed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox that was removed by its id, and its owner learns that it was meant", async () => {
    const sandbox = await fixture.create();
    await new GvisorProvider({ stateDirectory: fixture.stateDirectory }).remove(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "destroyed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox that did not start, and the error says why", async () => {
    const rootfs = await mkdtemp(join(tmpdir(), "sandpiper-rootfs-"));
    await writeFile(join(rootfs, ".sandpiper"), "a file where the agent's directory should be");
    const id = createSandboxId();
    await expect(Sandbox.create(fixture.provider, { rootfs }, { id })).rejects.toMatchObject({
      reason: "boot_failed",
      message: expect.stringContaining(".sandpiper"),
    });
    expect(await traces(id)).toEqual([]);
    await rm(rootfs, { recursive: true });
  });

  it.each([1, 15, 30, 45, 60, 90])("of a sandbox whose creation was canceled after %i ms", async (delayMs) => {
    const id = createSandboxId();
    const signal = AbortSignal.timeout(delayMs);
    const created = await Sandbox.create(fixture.provider, {}, { id, signal }).catch(() => undefined);
    await created?.destroy();
    expect(await traces(id)).toEqual([]);
  });

  it("when runsc cannot delete a sandbox: its cgroup knows what to kill", async () => {
    const runsc = await findRunsc(undefined);
    if ("reason" in runsc) throw new Error(runsc.reason);
    const broken = join(fixture.stateDirectory, "runsc-without-delete");
    await writeFile(broken, `#!/bin/sh\ncase " $* " in *" delete "*) exit 1 ;; esac\nexec ${runsc.path} "$@"\n`);
    await chmod(broken, 0o755);
    const provider = new GvisorProvider({ stateDirectory: fixture.stateDirectory, runsc: broken });
    const sandbox = await Sandbox.create(provider);
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("when an unknown id is removed", async () => {
    await fixture.provider.remove(createSandboxId());
    expect(await readdir(join(fixture.stateDirectory, "gvisor/instances"))).toEqual([]);
  });
});

describe("a program that is killed", () => {
  it("leaves sandboxes that its successor finds and removes", async () => {
    const program = startHostProgram(fixture);
    const { id } = await program.ready();
    expect(await find(id)).toMatchObject({ isRunning: true, isOrphan: false });
    await program.kill();
    expect(await find(id)).toMatchObject({ isRunning: true, isOrphan: true });
    await fixture.provider.remove(id);
    expect(await find(id)).toBeUndefined();
    expect(await traces(id)).toEqual([]);
  });

  it.each([0, 10, 20, 30, 40, 50, 60, 70, 80, 100])(
    "%i ms into a creation leaves nothing that its successor cannot find",
    async (delayMs) => {
      const program = startHostProgram(fixture);
      const id = await program.creating();
      await sleep(delayMs);
      await program.kill();
      const found = await find(id);
      if (found !== undefined) await fixture.provider.remove(id);
      expect(await traces(id), `found: ${found !== undefined}`).toEqual([]);
    },
  );

  it("while it makes or removes a directory has it cleared away by its successor", async () => {
    const instances = join(fixture.stateDirectory, "gvisor/instances");
    const abandoned = join(instances, `${createSandboxId()}~1~1`);
    await mkdir(abandoned, { recursive: true });
    await writeFile(join(abandoned, "record.json"), "{");
    expect(await fixture.provider.list()).toEqual([]);
    expect(await readdir(instances)).toEqual([]);
  });
});

async function find(id: SandboxId) {
  return (await fixture.provider.list()).find((record) => record.id === id);
}

async function mountsBelow(directory: string): Promise<string[]> {
  return (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => line.includes(directory));
}
