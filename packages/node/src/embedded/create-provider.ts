import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Clock, Provider } from "@sandpiper/core";
import {
  CpuBalance,
  DEFAULT_IMAGE,
  DockerProvider,
  FirecrackerProvider,
  findCgroups,
  Guard,
  GvisorProvider,
  HostImages,
  HostWorkspaces,
  type KillList,
  type KillTarget,
  LocalProvider,
  MachineDriver,
  MachineImages,
  machineKillList,
  ProjectDisks,
  ProjectVms,
  projectOfMachine,
  QemuProvider,
  SavedArchives,
  stateDirectory,
  VmDockerProvider,
  type VmDriver,
  VzDriver,
  WslDriver,
} from "@sandpiper/providers";
import { isPublicAddress } from "../network/public-address.ts";

export { findAgent, findCgroups, findRunsc, LOCAL_WARNING, stateDirectory, stripTypes } from "@sandpiper/providers";

/** All providers, the default first. */
export const composedProviders = ["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"] as const;
export type ComposedProviderName = (typeof composedProviders)[number];
/** Providers that many machines cannot run. */
export const optionalProviders: readonly ComposedProviderName[] = ["qemu", "firecracker"];
export const defaultProvider: ComposedProviderName = "gvisor";

/** Settings of provider docker; docs/docker.md has the defaults. */
export interface DockerSettings {
  /** The engine's address; from the environment by default. */
  readonly url?: string | undefined;
  /** Image of containers that do not name one. */
  readonly image?: string | undefined;
  /** Directories on the engine's machine that sandboxes can mount; none by default. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** Networks that sandboxes can join. */
  readonly networks?: readonly string[] | undefined;
  /** Ports of the engine's machine that sandboxes can choose, such as `8080` and `9000-9100`; none by default. */
  readonly hostPorts?: readonly string[] | undefined;
  /** Addresses at which sandboxes can publish ports, besides 127.0.0.1. */
  readonly hostAddresses?: readonly string[] | undefined;
  readonly runtime?: string | undefined;
}

/** Settings of provider qemu. */
interface QemuSettings {
  /** How many prepared machines to keep for each shape that sandboxes have used; none by default. */
  readonly prepared?: number | undefined;
}

/** Settings of provider firecracker. */
interface FirecrackerSettings {
  /** The kernel of the machines; the one that set-up downloaded by default. */
  readonly kernel?: string | undefined;
  /** How long the guest that checks KVM may take to boot; 10 s by default. */
  readonly bootTimeoutMs?: number | undefined;
  /** How long a machine may take to answer after a checkpoint; 10 s by default. */
  readonly connectTimeoutMs?: number | undefined;
}

/** Settings of provider vm-docker; docs/vm-docker.md has the defaults. */
interface VmDockerSettings {
  /** Files written by `docker save`; every machine loads their images. */
  readonly images?: readonly string[] | undefined;
  /** Root filesystem of the machines; on Linux, set-up builds one. */
  readonly machineImage?: string | undefined;
  /** Directories of this host that sandboxes can copy as their workspace; none by default. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** Hosts of repositories that may be private and use http; all public hosts are allowed. */
  readonly gitHosts?: readonly string[] | undefined;
  /** The largest workspace. */
  readonly workspaceMib?: number | undefined;
  /** How much of pulled images this host keeps. */
  readonly imageCacheMib?: number | undefined;
  /** Memory of one machine. */
  readonly memoryMib?: number | undefined;
  readonly vcpuCount?: number | undefined;
  readonly diskMib?: number | undefined;
  /** Disk of a project's volumes and caches, which outlives its machines. */
  readonly volumesMib?: number | undefined;
  /** Kernel of the machines; Debian's by default. */
  readonly kernel?: string | undefined;
  /** Initramfs whose content replaces the modules of Debian's kernel. */
  readonly initrd?: string | undefined;
  /** How long a machine without sandboxes keeps running. */
  readonly idleMs?: number | undefined;
}

export interface ProviderOptions {
  /** The program of provider firecracker; by default it is searched for, as docs/firecracker.md describes. */
  readonly firecrackerPath?: string | undefined;
  /** Receives what the lease guard must kill, for nodes of a cluster. */
  readonly killList?: KillList | undefined;
  /** Directory of the sandboxes and their files; $SANDPIPER_HOME or ~/.sandpiper by default. */
  readonly home?: string | undefined;
  readonly docker?: DockerSettings | undefined;
  readonly qemu?: QemuSettings | undefined;
  readonly firecracker?: FirecrackerSettings | undefined;
  readonly vmDocker?: VmDockerSettings | undefined;
}

export function createProvider(name: ComposedProviderName, options: ProviderOptions = {}): Provider {
  const { home, docker = {}, qemu, firecracker, firecrackerPath, vmDocker, killList } = options;
  const state = { ...(home === undefined ? {} : { stateDirectory: resolve(home) }), killList };
  switch (name) {
    case "gvisor":
      return new GvisorProvider(state);
    case "qemu":
      return new QemuProvider({ ...state, ...qemu });
    case "firecracker":
      return new FirecrackerProvider({ ...state, ...firecracker, firecrackerPath });
    case "vm-docker":
      return createVmDockerProvider(state.stateDirectory ?? stateDirectory(), {
        image: docker.image,
        killList,
        ...vmDocker,
      });
    case "local":
      return new LocalProvider(state);
    case "docker": {
      const { url: engineUrl, ...settings } = docker;
      return new DockerProvider({ ...state, engineUrl, ...settings });
    }
  }
}

function createVmDockerProvider(
  home: string,
  {
    image = DEFAULT_IMAGE,
    killList,
    ...settings
  }: VmDockerSettings & Pick<DockerSettings, "image"> & Pick<ProviderOptions, "killList">,
): Provider {
  const { memoryMib = 2048, vcpuCount = 2, diskMib = 20_480, imageCacheMib = 20_480, idleMs } = settings;
  const disks = new ProjectDisks({ directory: join(home, "vm/projects"), sizeMib: settings.volumesMib ?? 20_480 });
  const targets = new Map<string, readonly KillTarget[]>();
  const driver = createVmDriver(home, settings, { disks, killList: targets });
  const listFor = (id: string) => killList && machineKillList(killList, () => targets.get(id) ?? []);
  const host = new HostImages({
    directory: join(home, "vm/images"),
    maxBytes: imageCacheMib * 2 ** 20,
    maxImageBytes: diskMib * 2 ** 20,
  });
  const { allowedPaths = [], gitHosts = [], workspaceMib = 2048 } = settings;
  const workspaces = new HostWorkspaces({
    directory: join(tmpdir(), `sandpiper-workspaces-${process.getuid?.() ?? 0}`),
    allowedPaths,
    ownPaths: [home],
    gitHosts,
    isPublicAddress,
    maxBytes: workspaceMib * 2 ** 20,
  });
  return new VmDockerProvider({
    vms: new ProjectVms({ driver, resources: { memoryMib, vcpuCount, diskMib }, idleMs }),
    probe: () => driver.probe(),
    images: new MachineImages({ host, archives: new SavedArchives(settings.images ?? []) }),
    defaultImage: image,
    workspaces,
    disks,
    createEngineProvider: (vm, clock) =>
      new DockerProvider({
        stateDirectory: vm.directory,
        engineUrl: vm.engineUrl,
        image,
        clock,
        killList: listFor(vm.id),
        // The engine of a machine has no other user, and its caches outlive this directory.
        home: "machine",
        networks: MACHINE_NETWORKS,
        readWorkspace: (workspace, options) => workspaces.archive(workspace, options),
      }),
  });
}

/** Each project has its own machine and engine, so this network reaches no other project. */
const MACHINE_NETWORKS = ["bridge"];

/** Selects the driver for this operating system. */
function createVmDriver(
  home: string,
  settings: VmDockerSettings,
  { disks, killList }: { readonly disks: ProjectDisks; readonly killList: KillList },
): VmDriver {
  const { images: archives = [], machineImage, kernel, initrd } = settings;
  // Kept apart from provider qemu, which would take these machines for its sandboxes.
  const stateDirectory = join(home, "vm");
  const directory = join(stateDirectory, "engines");
  if (process.platform === "darwin") return new VzDriver({ directory, image: machineImage, archives });
  if (process.platform === "win32") return new WslDriver({ directory, image: machineImage, archives });
  return new MachineDriver({
    machines: new QemuProvider({
      stateDirectory,
      initrd,
      volumeDisk: (spec) => disks.plan(projectOfMachine(spec)),
      killList,
    }),
    directory,
    consoleLog: (id) => join(stateDirectory, "qemu/instances", id, "machine/console.log"),
    archives,
    disks,
    image: machineImage,
    kernel,
  });
}

/** Undefined on a host without cgroups. */
export function createCpuBalance(clock: Clock): CpuBalance | undefined {
  const cgroups = findCgroups();
  return cgroups && new CpuBalance(cgroups, clock);
}

/** Kills a node's instances whose lease has expired. Its files are in memory: a full disk must not end a lease. */
export function createGuard(home: string, options: { readonly clock: Clock; readonly graceMs: number }): Guard {
  const name = createHash("sha256").update(home).digest("hex").slice(0, 16);
  const directory = existsSync("/run") ? join("/run/sandpiper", name) : join(home, "guard");
  return new Guard({ directory, ...options });
}
