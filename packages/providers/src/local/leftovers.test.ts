import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Sandbox } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LOCAL_WARNING } from "./probe.ts";
import { LocalProvider } from "./provider.ts";
import { processesOf, tracesOf } from "./testing/traces.ts";

/** Two processes of which one has left its parent and session behind. */
const daemons = "setsid sh -c 'sleep 611 & sleep 612' & sleep 613";

let stateDirectory: string;
let provider: LocalProvider;
beforeAll(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-local-"));
  provider = new LocalProvider({ stateDirectory });
});
afterAll(() => rm(stateDirectory, { recursive: true }));

describe("the local provider", () => {
  it("says that it isolates nothing wherever it is described", async () => {
    expect(LOCAL_WARNING).toContain("isolates nothing");
    expect(await provider.probe()).toEqual({ available: true, detail: LOCAL_WARNING });
    expect(provider.capabilities.isolation).toBe("none");
  });

  it("runs on the machine's own root filesystem only", async () => {
    await expect(Sandbox.create(provider, { rootfs: "/tmp" })).rejects.toMatchObject({
      reason: "rootfs_not_supported",
    });
  });

  it("gives a sandbox nothing of this program's environment but the search path", async () => {
    process.env["SANDPIPER_TEST_SECRET"] = "secret";
    await using sandbox = await Sandbox.create(provider, { env: { GIVEN: "1" } });
    delete process.env["SANDPIPER_TEST_SECRET"];
    const { stdout } = await sandbox.exec("env");
    expect(stdout).toContain("GIVEN=1\n");
    expect(stdout).not.toContain("secret");
  });

  it("ends everything that was started, also what left its parent and session", async () => {
    const sandbox = await Sandbox.create(provider);
    await sandbox.start(daemons);
    await expect.poll(async () => (await processesOf(sandbox.id)).length).toBeGreaterThanOrEqual(5);
    await sandbox.destroy();
    expect(await tracesOf(sandbox.id, stateDirectory)).toEqual([]);
  });

  it("leaves no process when its program is killed, and a directory that the next one removes", async () => {
    const script = fileURLToPath(new URL("testing/host-program.ts", import.meta.url));
    const program = spawn(process.execPath, [script, stateDirectory, daemons], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [id] = (await once(createInterface(program.stdout), "line")) as [SandboxId];
    await expect.poll(async () => (await processesOf(id)).length).toBeGreaterThanOrEqual(5);
    const ended = once(program, "exit");
    program.kill("SIGKILL");
    await ended;
    await expect.poll(() => processesOf(id)).toEqual([]);
    const [record] = await provider.list();
    expect(record).toMatchObject({ id, isRunning: false, isOrphan: true });
    await provider.remove(id);
    expect(await tracesOf(id, stateDirectory)).toEqual([]);
  });
});
