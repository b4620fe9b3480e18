import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { SandboxId } from "@sandpiper/protocol";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { tracesOf } from "../../packages/providers/src/host/testing/machine-traces.ts";

/** The configuration of every machine: a small root filesystem and few resources. */
export const MACHINE = { image: "small", memoryMib: 192, diskMib: 64, vcpuCount: 1 };

/** A directory for nodes with virtual machines; disposing it removes its instances and files. */
export class QemuHome implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "sp-"));
  readonly #provider = createProvider("qemu", { home: join(this.path, "node") });

  static async make(): Promise<QemuHome> {
    const home = new QemuHome();
    await mkdir(join(home.path, "images"));
    // A handoff needs the same image on both nodes.
    symlinkSync(await testRoot(), join(home.path, "images", MACHINE.image));
    return home;
  }

  config(settings: NodeConfigOptions = {}): NodeConfigOptions {
    return { home: this.path, port: 0, logLevel: "warn", defaultProvider: "qemu", ...settings };
  }

  /** Processes, cgroups, sockets, disks and memory files of a sandbox. */
  traces(id: string): Promise<string[]> {
    return tracesOf(id as SandboxId, this.path);
  }

  /** The processes of a sandbox's machine on this home's node. */
  processesOf(id: string): readonly string[] {
    return processesIn(join(this.path, "node/qemu/instances", id));
  }

  /** Whether the sandbox's machine was started before its sandbox existed. */
  isFromPrepared(id: string): boolean {
    return namesIn(join(this.path, "node/qemu/instances", id)).includes("cgroup");
  }

  /** Processes and directories of all machines, finished or not. */
  left(): readonly string[] {
    const directories = ["instances", "transient"].map((name) => join(this.path, "node/qemu", name));
    return [...processesIn(this.path), ...directories.flatMap(namesIn)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { id } of await this.#provider.list()) await this.#provider.remove(id);
    rmSync(this.path, { recursive: true, force: true });
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** QEMU changes its root to its machine's directory. */
function processesIn(directory: string): string[] {
  return namesIn("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/root`).includes(directory);
    } catch {
      return false;
    }
  });
}
