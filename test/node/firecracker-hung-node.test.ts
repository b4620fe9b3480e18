import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import { expect, it } from "vitest";
import { installDouble } from "../../packages/providers/src/firecracker/testing/install-double.ts";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { startTwoNodes } from "./two-nodes.ts";

const LEASE_MS = 6000;
const TIMEOUT_MS = 90_000;
const MACHINE = { image: "small", memoryMib: 192, diskMib: 64, vcpuCount: 1 };

const double = await shared(installDouble());
// The nodes inherit them. The double needs no KVM: any device that can be opened works.
Object.assign(process.env, { SANDPIPER_FIRECRACKER: double.firecracker, SANDPIPER_KVM: "/dev/null" });
const homes = [await shared(makeHome()), await shared(makeHome())] as const;
const store = freshDirectory("store");

/** A directory for nodes with Firecracker machines; disposing it removes its instances and files. */
async function makeHome() {
  const home = mkdtempSync(join(tmpdir(), "sp-"));
  await mkdir(join(home, "images"));
  symlinkSync(await testRoot(), join(home, "images", MACHINE.image));
  const provider = createProvider("firecracker", { home: join(home, "node") });
  return {
    config: (settings: NodeConfigOptions): NodeConfigOptions => ({
      home,
      logLevel: "warn",
      defaultProvider: "firecracker",
      ...settings,
    }),
    [Symbol.asyncDispose]: async () => {
      for (const { id } of await provider.list()) await provider.remove(id);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A killed process stays without a command line until its parent, the hung node, reads its exit status. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) && readFileSync(path, "utf8") !== "";
}

it(
  "ends the Firecracker machine of a node that hangs for longer than its lease before another node restores it",
  async () => {
    await using cluster = await startTwoNodes(homes, { store: `file://${store}`, leaseMs: LEASE_MS });
    const sandbox = await cluster.here.sandboxes.create(MACHINE);
    await sandbox.exec("echo saved > file");
    await sandbox.checkpoint();
    await sandbox.exec("echo later > file");
    const processes = await machineProcesses(sandbox.id);
    expect(processes).not.toEqual([]);
    cluster.first.freeze();
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec("cat file")).stdout).toBe("saved\n");
    expect(processes.filter(isRunning)).toEqual([]);
    cluster.first.thaw();
    expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
    await moved.destroy();
  },
  TIMEOUT_MS,
);
