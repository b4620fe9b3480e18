import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Clock, type ManagerConfigOptions, type Provider, SandboxManager } from "@sandpiper/core";
import {
  DockerProvider,
  FirecrackerProvider,
  Guard,
  GvisorProvider,
  instanceCgroup,
  LocalProvider,
  MachineDriver,
  ProjectVms,
  QemuProvider,
  stateDirectory,
  VmDockerProvider,
  type VmDriver,
  VzDriver,
  WslDriver,
} from "@sandpiper/providers";

export { findAgent, findCgroups, findRunsc, LOCAL_WARNING, stateDirectory } from "@sandpiper/providers";

export type ComposedProviderName = "gvisor" | "qemu" | "firecracker" | "docker" | "vm-docker" | "local";

/** The providers there are, the default first. */
export const composedProviders: readonly ComposedProviderName[] = [
  "gvisor",
  "qemu",
  "firecracker",
  "docker",
  "vm-docker",
  "local",
];
/** Those that many machines cannot have: nothing is wrong with a machine that lacks them. */
export const optionalProviders: readonly ComposedProviderName[] = ["qemu", "firecracker"];
export const defaultProvider: ComposedProviderName = "gvisor";

/** What provider docker is told; what is left out is as docs/docker.md says. */
export interface DockerSettings {
  /** Where the engine listens; what the environment says unless given. */
  readonly url?: string | undefined;
  /** Of containers that name none. */
  readonly image?: string | undefined;
  /** Directories of the engine's machine that may be mounted; none unless given. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** That may be asked for. */
  readonly networks?: readonly string[] | undefined;
  readonly runtime?: string | undefined;
}

/** What provider qemu is told. */
interface QemuSettings {
  /** How many prepared machines to keep for each shape that sandboxes have used; none by default. */
  readonly prepared?: number | undefined;
}

/** What provider vm-docker is told; what is left out is as docs/vm-docker.md says. */
interface VmDockerSettings {
  /** Files that `docker save` wrote; every machine has these images. */
  readonly images?: readonly string[] | undefined;
  /** What machines are made of where set-up builds nothing: a disk on macOS, an archive on Windows. */
  readonly machineImage?: string | undefined;
  /** Of each machine. */
  readonly memoryMib?: number | undefined;
  readonly vcpuCount?: number | undefined;
  readonly diskMib?: number | undefined;
  /** How long a machine without sandboxes goes on. */
  readonly idleMs?: number | undefined;
}

export interface ProviderOptions {
  /** Where sandboxes and what they write are kept; $SANDPIPER_HOME or ~/.sandpiper unless given. */
  readonly home?: string | undefined;
  readonly docker?: DockerSettings | undefined;
  readonly qemu?: QemuSettings | undefined;
  readonly vmDocker?: VmDockerSettings | undefined;
}

export interface CreateManagerOptions extends ManagerConfigOptions, ProviderOptions {
  readonly provider?: ComposedProviderName | undefined;
}

export function createProvider(name: ComposedProviderName, options: ProviderOptions = {}): Provider {
  const { home, docker = {}, qemu, vmDocker } = options;
  const place = home === undefined ? {} : { stateDirectory: resolve(home) };
  switch (name) {
    case "gvisor":
      return new GvisorProvider(place);
    case "qemu":
      return new QemuProvider({ ...place, ...qemu });
    case "firecracker":
      return new FirecrackerProvider(place);
    case "vm-docker":
      return createVmDockerProvider(place.stateDirectory ?? stateDirectory(), { image: docker.image, ...vmDocker });
    case "local":
      return new LocalProvider(place);
    case "docker": {
      const { url: engineUrl, ...settings } = docker;
      return new DockerProvider({ ...place, engineUrl, ...settings });
    }
  }
}

function createVmDockerProvider(
  home: string,
  { image, ...settings }: VmDockerSettings & Pick<DockerSettings, "image">,
): Provider {
  const { memoryMib = 2048, vcpuCount = 2, diskMib = 20_480, idleMs } = settings;
  const driver = createVmDriver(home, settings);
  return new VmDockerProvider({
    vms: new ProjectVms({ driver, resources: { memoryMib, vcpuCount, diskMib }, idleMs }),
    probe: () => driver.probe(),
    createEngineProvider: (vm, clock) =>
      new DockerProvider({ stateDirectory: vm.directory, engineUrl: vm.engineUrl, image, clock }),
  });
}

/** What this system runs machines with. */
function createVmDriver(home: string, { images: archives = [], machineImage }: VmDockerSettings): VmDriver {
  // Of their own: the machines of projects are no sandboxes of provider qemu.
  const place = join(home, "vm");
  const directory = join(place, "engines");
  if (process.platform === "darwin") return new VzDriver({ directory, disk: machineImage, archives });
  if (process.platform === "win32") return new WslDriver({ directory, archive: machineImage, archives });
  return new MachineDriver({
    machines: new QemuProvider({ stateDirectory: place }),
    directory,
    consoleLog: (id) => join(place, "qemu/instances", id, "machine/console.log"),
    archives,
  });
}

/** A manager of many sandboxes in this very program. Reconciling with what earlier programs left is its owner's call. */
export function createManager(options: CreateManagerOptions = {}): SandboxManager {
  const { provider = defaultProvider, home, docker, qemu, vmDocker, ...config } = options;
  return new SandboxManager(createProvider(provider, { home, docker, qemu, vmDocker }), config);
}

/** Ends the instances of a node whose leases are over. In memory, if possible: a full disk must not end a lease. */
export function createGuard(home: string, clock: Clock): Guard {
  const place = createHash("sha256").update(home).digest("hex").slice(0, 16);
  const directory = existsSync("/run") ? join("/run/sandpiper", place) : join(home, "guard");
  const stateDirectory = join(home, "node");
  return new Guard({ directory, clock, cgroupPath: (id) => instanceCgroup(id, { stateDirectory }) });
}
