import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { findRunsc } from "../host/find-runsc.ts";
import { shared } from "../host/testing/shared.ts";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture } from "./testing/fixture.ts";

const runsc = await findRunsc(undefined);
if ("reason" in runsc) throw new Error(`${runsc.reason}; ${runsc.hint}`);
const runtimes = { runsc: runsc.path };
const fixture = await shared(createDockerFixture({ runtimes, image: { variant: "python" } }));

describe("an engine that has gVisor", () => {
  it("runs containers in gVisor by default", async () => {
    await using sandbox = await fixture.create({ memoryMib: 128 });
    const { HostConfig } = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();
    expect(HostConfig.Runtime).toBe("runsc");
    expect((await sandbox.exec("cat /proc/version")).stdout).toContain("gvisor");
    const plain = fixture.newProvider({ runtime: "runc" });
    await using other = await Sandbox.create(plain);
    const { stdout } = await other.exec("cat /proc/version");
    expect(stdout).not.toContain("gvisor");
  });

  it("keeps users, files, output and limits of a sandbox working", async () => {
    await using sandbox = await fixture.create({ memoryMib: 128, maxProcesses: 24 });
    expect((await sandbox.exec("id -u; id -u", { user: "root" })).stdout).toBe("0\n0\n");
    expect((await sandbox.exec("echo x > /.data/x; cat /.data/x; id -un")).stdout).toBe("x\nuser\n");
    const bytes = new Uint8Array(3_000_000).fill(7);
    await sandbox.writeFile("/tmp/bytes", bytes);
    expect((await sandbox.readFile("/tmp/bytes")).length).toBe(bytes.length);
    const forkMany = "import os\nfor i in range(60):\n  os.fork() or os.execvp('sleep', ['sleep', '60'])";
    expect((await sandbox.exec(["python3", "-c", forkMany])).stderr).toContain("Resource temporarily unavailable");
  });

  it("reports a container that exceeded its memory limit", async () => {
    await using sandbox = await fixture.create({ memoryMib: 64 });
    const hog = ["python3", "-c", "x = b'y' * (600 << 20)"];
    await expect(sandbox.exec(hog)).rejects.toThrow(/memory|ended/);
    expect(await sandbox.closed).toMatchObject({ reason: expect.stringMatching(/out_of_memory|crashed/) });
  });
});
