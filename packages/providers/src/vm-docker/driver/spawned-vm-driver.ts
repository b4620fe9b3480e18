import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { probeHost } from "../../host/probe-host.ts";
import type { OrphanVm, StartVmOptions, Vm, VmDriver } from "../vm/vm-driver.ts";
import { loadImages } from "./load-images.ts";
import { listAbandoned, markMachine } from "./machine-marks.ts";
import type { SpawnedVm } from "./spawned-vm.ts";

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: "macOS", win32: "Windows" };

export interface SpawnedVmDriverOptions {
  /** Holds one directory for each machine. */
  readonly directory: string;
  /** Files that `docker save` wrote; every machine loads them. */
  readonly archives: readonly string[];
  /** The image of the machines, from vmDocker.machineImage. */
  readonly image: string | undefined;
  readonly platform?: NodeJS.Platform | undefined;
}

/** A driver whose machines are child processes of this program, and end with it. */
export abstract class SpawnedVmDriver<Host> implements VmDriver {
  abstract readonly name: "vz" | "wsl2";
  protected readonly directory: string;
  readonly #archives: readonly string[];
  readonly #image: string | undefined;
  readonly #platform: NodeJS.Platform;

  constructor({ directory, archives, image, platform = process.platform }: SpawnedVmDriverOptions) {
    this.directory = directory;
    this.#archives = archives;
    this.#image = image;
    this.#platform = platform;
  }

  /** Throws when this host lacks something that machines need. */
  protected abstract requireHost(): Host;
  protected abstract describe(): Promise<string>;
  /** Starts a machine whose directory exists. */
  protected abstract launch(
    host: Host,
    machine: Pick<Vm, "id" | "projectId" | "directory">,
    options: StartVmOptions,
  ): Promise<SpawnedVm>;
  abstract remove(id: string): Promise<void>;

  probe(): Promise<ProviderStatus> {
    return probeHost(() => this.describe());
  }

  async start(projectId: string, options: StartVmOptions): Promise<Vm> {
    const { signal } = options;
    const host = this.requireHost();
    signal.throwIfAborted();
    const id = randomUUID();
    const directory = join(this.directory, id);
    await markMachine(directory, projectId);
    try {
      const vm = await this.launch(host, { id, projectId, directory }, options);
      await vm.untilAnswering(signal).catch(async (error: unknown) => {
        await vm.destroy();
        throw error;
      });
      await loadImages(vm.engineUrl, { archives: this.#archives, signal });
      return vm;
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  listOrphans(): Promise<readonly OrphanVm[]> {
    return listAbandoned(this.directory);
  }

  async adopt(id: string): Promise<Vm> {
    throw new SandboxError("machine_not_adopted", {
      message: `cannot adopt machine ${id}: machines of driver ${this.name} end with their program`,
    });
  }

  protected requireImage(needed: string, kind = needed): string {
    if (this.#image !== undefined) return this.#image;
    throw new SandboxError("image_missing", {
      message: `vmDocker.machineImage is not set: machines with a container engine need ${needed}`,
      hint: `set vmDocker.machineImage to ${kind} as docs/vm-docker.md describes it`,
    });
  }

  protected requirePlatform(wanted: NodeJS.Platform): void {
    const platform = this.#platform;
    if (platform === wanted) return;
    throw new SandboxError("platform_not_supported", {
      message: `machines of driver ${this.name} are only available on ${NAMES[wanted]} (${wanted}); this is ${platform}`,
      hint: "do not choose a driver; Sandpiper uses the one for this system",
      details: { driver: this.name, wanted, platform },
    });
  }
}
