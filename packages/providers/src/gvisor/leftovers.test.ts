import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { findRunsc } from "../host/find-runsc.ts";
import { putScript, shared, sharedDirectory } from "../host/testing/shared.ts";
import { createGvisorFixture } from "./testing/fixture.ts";
import { tracesOf } from "./testing/traces.ts";

const fixture = await shared(createGvisorFixture());
const rootfs = sharedDirectory("rootfs");

const traces = (id: SandboxId) => tracesOf(id, fixture.stateDirectory);

describe("the gVisor provider", () => {
  it("leaves no mount when a sandbox is destroyed", async () => {
    const sandbox = await fixture.create();
    await sandbox.destroy();
    const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n");
    expect(mounts.filter((line) => line.includes(fixture.stateDirectory))).toEqual([]);
  });

  it("leaves nothing of a sandbox that does not start, and reports why", async () => {
    await writeFile(join(rootfs, ".sandpiper"), "a file where the agent's directory should be");
    const id = createSandboxId();
    await expect(Sandbox.create(fixture.provider, { rootfs }, { id })).rejects.toMatchObject({
      reason: "boot_failed",
      message: expect.stringContaining(".sandpiper"),
    });
    expect(await traces(id)).toEqual([]);
  });

  it("removes a sandbox that runsc fails to delete, by killing the processes in its cgroup", async () => {
    const runsc = await findRunsc(undefined);
    if ("reason" in runsc) throw new Error(runsc.reason);
    const path = join(fixture.stateDirectory, "runsc-without-delete");
    const broken = await putScript(path, `case " $* " in *" delete "*) exit 1 ;; esac\nexec ${runsc.path} "$@"`);
    const provider = fixture.newProvider({ runsc: broken });
    const sandbox = await Sandbox.create(provider);
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });
});
