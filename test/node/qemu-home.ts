import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createProvider } from "@sandpiper/node";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { SandboxId } from "@sandpiper/protocol";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { tracesOf } from "../../packages/providers/src/host/testing/machine-traces.ts";

/** Of every machine: a small root filesystem, and little of everything. */
export const MACHINE = { image: "small", memoryMib: 192, diskMib: 64, vcpuCount: 1 };

/** A directory for nodes with virtual machines, which is gone afterwards with everything that ran in it. */
export class QemuHome implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "sp-"));
  readonly #provider = createProvider("qemu", { home: join(this.path, "node") });

  static async make(): Promise<QemuHome> {
    const home = new QemuHome();
    await mkdir(join(home.path, "images"));
    // Nodes that hand machines over need one and the same image.
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

  /** Everything of any machine: what runs in this directory, and what instances and machines in the making left in it. */
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

/** QEMU starts in the directory of its machine; once it has locked itself in there its root is that. */
function processesIn(directory: string): string[] {
  return namesIn("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/root`).includes(basename(directory));
    } catch {
      return false;
    }
  });
}
