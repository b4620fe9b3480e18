import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type InstanceRecord, type Provider, type ProviderStatus, Sandbox, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { findDockerRoot } from "../../guest/image-default.ts";
import { canProvision, type ProvisionOptions, provision } from "../../guest/provision.ts";
import { unavailable } from "../../host/probe-host.ts";
import type { ProjectDisks } from "../disk/project-disks.ts";
import { pruneVolumes } from "../disk/prune-volumes.ts";
import type { OrphanVm, StartVmOptions, Vm, VmDriver } from "../vm/vm-driver.ts";
import { loadImages } from "./load-images.ts";
import { MachineVm } from "./machine-vm.ts";

/** The label that tells a later program which project a machine belongs to. */
const PROJECT_LABEL = "project";
/** For all containers together; each also has its own limit. */
const MAX_PROCESSES = 32_768;
const BUILT_LATER = "the first machine takes half a minute longer, because its image is not built yet";
const ADOPT_TIMEOUT_MS = 30_000;

export interface MachineDriverOptions {
  /** Creates the machines; its state directory holds no other instances. */
  readonly machines: Provider;
  /** Holds the state of the machines' containers. */
  readonly directory: string;
  /** The path of a machine's console log. */
  readonly consoleLog: (id: string) => string;
  /** Files that `docker save` wrote; every machine loads them. */
  readonly archives: readonly string[];
  /** The disks of the machines' volumes. */
  readonly disks: ProjectDisks;
  /** The root filesystem of the machines; by default the one that set-up builds. */
  readonly image?: string | undefined;
  /** The kernel of the machines; by default Debian's. */
  readonly kernel?: string | undefined;
}

/** Runs machines on Linux with a provider of virtual machines: QEMU. */
export class MachineDriver implements VmDriver {
  readonly name = "qemu";
  readonly #options: MachineDriverOptions;

  constructor(options: MachineDriverOptions) {
    this.#options = options;
  }

  async probe(): Promise<ProviderStatus> {
    const status = await this.#options.machines.probe();
    if (!status.available) return status;
    const detail = `a machine for each project: ${status.detail}`;
    if (this.#options.image !== undefined || (await findDockerRoot()) !== undefined) return { ...status, detail };
    if (canProvision()) return { available: true, detail: `${detail}; ${BUILT_LATER}`, isFirstUse: true };
    return unavailable(imageMissing());
  }

  async start(projectId: string, { resources, signal, onProgress }: StartVmOptions): Promise<Vm> {
    const { archives, image, kernel } = this.#options;
    const rootfs = image ?? (await provideRoot({ signal, onProgress }));
    const config = {
      ...resources,
      rootfs,
      kernel,
      maxProcesses: MAX_PROCESSES,
      labels: { [PROJECT_LABEL]: projectId },
    };
    const machine = await Sandbox.create(this.#options.machines, config, { signal, onProgress });
    try {
      const vm = await MachineVm.start(this.#parts(machine, projectId), signal);
      await pruneVolumes(vm.engineUrl, signal);
      await loadImages(vm.engineUrl, { archives, signal });
      return vm;
    } catch (error) {
      await machine.destroy();
      await this.#forget(machine.id);
      throw error;
    }
  }

  async listOrphans(): Promise<readonly OrphanVm[]> {
    const records = (await this.#options.machines.list()).filter(({ isOrphan }) => isOrphan);
    return records.map(({ id, spec, isRunning }) => ({ id, projectId: projectOf(spec), isRunning }));
  }

  async adopt(id: string): Promise<Vm> {
    const { machines } = this.#options;
    const record = await this.#record(id);
    const machine = await Sandbox.adopt(machines, record);
    return await MachineVm.adopt(this.#parts(machine, projectOf(record.spec)), AbortSignal.timeout(ADOPT_TIMEOUT_MS));
  }

  async remove(id: string): Promise<void> {
    await this.#options.machines.remove(id as SandboxId);
    await this.#forget(id);
  }

  async #record(id: string): Promise<InstanceRecord> {
    const record = (await this.#options.machines.list()).find((found) => found.id === id);
    if (record !== undefined) return record;
    throw new SandboxError("no_such_machine", {
      message: `cannot adopt machine ${id}: it does not exist`,
      hint: "create a new sandbox; that starts a new machine",
    });
  }

  #parts(machine: Sandbox, projectId: string) {
    const { id } = machine;
    const onDestroyed = () => this.#options.disks.tidy(projectId);
    return {
      machine,
      projectId,
      directory: this.#directory(id),
      consoleLog: this.#options.consoleLog(id),
      onDestroyed,
    };
  }

  #directory(id: string): string {
    return join(this.#options.directory, id);
  }

  async #forget(id: string): Promise<void> {
    await rm(this.#directory(id), { recursive: true, force: true });
  }
}

/** Builds the image for the first machine, where set-up can. */
async function provideRoot(options: ProvisionOptions): Promise<string> {
  const found = await findDockerRoot();
  if (found !== undefined) return found;
  if (canProvision()) await provision(["kernel", "docker-image"], options);
  const built = await findDockerRoot();
  if (built !== undefined) return built;
  throw imageMissing();
}

/** The project that a machine belongs to. */
export function projectOf({ labels }: Pick<InstanceRecord["spec"], "labels">): string {
  return labels[PROJECT_LABEL] ?? "";
}

function imageMissing(): SandboxError {
  return new SandboxError("image_missing", {
    message: "the image for machines with a container engine is not built",
    hint: "build it with `npm run setup docker-image` in Sandpiper's directory",
  });
}
