import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../host/testing/shared.ts";
import { startHostProgram } from "../host/testing/start-host-program.ts";
import { LOCAL_WARNING, LocalProvider } from "./provider.ts";
import { HOST_PROGRAM, processesOf, tracesOf } from "./testing/traces.ts";

/** Starts a daemon, which leaves its parent and its session. */
const daemons = "setsid sh -c 'sleep 611 & sleep 612' & sleep 613";

const stateDirectory = sharedDirectory("local");
const provider = new LocalProvider({ stateDirectory });

describe("the local provider", () => {
  it("warns in its status that it isolates nothing", async () => {
    expect(LOCAL_WARNING).toContain("isolates nothing");
    expect(await provider.probe()).toEqual({ available: true, detail: LOCAL_WARNING });
    expect(provider.capabilities.isolation).toBe("none");
  });

  it("refuses any root filesystem except the machine's own", async () => {
    await expect(Sandbox.create(provider, { rootfs: "/tmp" })).rejects.toMatchObject({
      reason: "rootfs_not_supported",
    });
  });

  it("passes only the search path of the host's environment to a sandbox", async () => {
    process.env["SANDPIPER_TEST_SECRET"] = "secret";
    await using sandbox = await Sandbox.create(provider, { env: { GIVEN: "1" } });
    delete process.env["SANDPIPER_TEST_SECRET"];
    const { stdout } = await sandbox.exec("env");
    expect(stdout).toContain("GIVEN=1\n");
    expect(stdout).not.toContain("secret");
  });

  it("ends every process that was started, including daemons", async () => {
    const sandbox = await Sandbox.create(provider);
    await sandbox.start(daemons);
    await expect.poll(async () => (await processesOf(sandbox.id)).length).toBeGreaterThanOrEqual(5);
    await sandbox.destroy();
    expect(await tracesOf(sandbox.id, stateDirectory)).toEqual([]);
  });

  it("leaves no daemon when its program is killed, and a directory that the next program removes", async () => {
    const program = startHostProgram(HOST_PROGRAM, { stateDirectory }, { command: daemons });
    const { id } = await program.ready();
    await expect.poll(async () => (await processesOf(id)).length).toBeGreaterThanOrEqual(5);
    await program.kill();
    await expect.poll(() => processesOf(id)).toEqual([]);
    const [record] = await provider.list();
    expect(record).toMatchObject({ id, isRunning: false, isOrphan: true });
    await provider.remove(id);
    expect(await tracesOf(id, stateDirectory)).toEqual([]);
  });
});
