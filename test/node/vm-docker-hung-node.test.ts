import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import { expect, it } from "vitest";
import { machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { QemuProvider } from "../../packages/providers/src/qemu/provider.ts";
import { startTwoNodes } from "./two-nodes.ts";
import { RESOURCES, VmDockerHome } from "./vm-docker-home.ts";

/** Two machines boot, each with its engine; without KVM, QEMU emulates all of that. */
const TIMEOUT_MS = 360_000;
const LEASE_MS = 15_000;

const PROMISE =
  "ends the machine of a node that hangs for longer than its leases before another node runs its sandboxes";

if (process.env["SANDPIPER_TEST_MACHINES"] === "all") it(PROMISE, hangWithMachine, TIMEOUT_MS);
else it.skip(`${PROMISE} (skipped: it takes minutes; SANDPIPER_TEST_MACHINES=all runs it)`);

async function hangWithMachine(): Promise<void> {
  await using images = await VmDockerHome.create("base");
  const store = join(images.home, "store");
  await using first = new NodeHome(images);
  await using second = new NodeHome(images);
  await using cluster = await startTwoNodes([first, second], { store: `file://${store}`, leaseMs: LEASE_MS });
  const sandbox = await cluster.here.sandboxes.create({ memoryMib: 128, container: { project: "shop" } });
  await sandbox.exec("echo saved > file");
  await sandbox.checkpoint();
  const [machine] = await first.machines();
  expect(await machineProcesses(machine ?? "")).not.toEqual([]);
  cluster.first.freeze();
  const moved = await cluster.there.sandboxes.connect(sandbox.id);
  expect((await moved.exec("cat file")).stdout).toBe("saved\n");
  expect(await machineProcesses(machine ?? "")).toEqual([]);
  cluster.first.thaw();
  expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
}

/** A directory for a node with provider vm-docker; disposing it removes its machines and files. */
class NodeHome implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "sp-"));
  readonly #images: VmDockerHome;
  readonly #machines = new QemuProvider({ stateDirectory: join(this.path, "node/vm") });

  constructor(images: VmDockerHome) {
    this.#images = images;
  }

  config(settings: NodeConfigOptions): NodeConfigOptions {
    const vmDocker = { images: [this.#images.archive], ...RESOURCES };
    const docker = { image: this.#images.image };
    return { home: this.path, port: 0, logLevel: "warn", defaultProvider: "vm-docker", vmDocker, docker, ...settings };
  }

  async machines(): Promise<readonly string[]> {
    return (await this.#machines.list()).map(({ id }) => id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of (await this.#machines.list()).map((found) => found.id)) await this.#machines.remove(id);
    rmSync(this.path, { recursive: true, force: true });
  }
}
