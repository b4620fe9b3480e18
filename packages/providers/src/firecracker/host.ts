import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import { findKernel, type Kernel } from "../guest/kernel.ts";
import type { Cgroups } from "../host/cgroups.ts";
import { missing, requireCgroups, requireLinux, requireRoot, requireShortPath } from "../host/host-requirements.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { type Firecracker, findFirecracker } from "./find-firecracker.ts";
import { type BootFiles, makeBootFiles } from "./machine/boot-files.ts";
import { requireKvm } from "./machine/kvm.ts";
import { API_SOCKET, VSOCK_SOCKET } from "./machine/machine-files.ts";
import { SharedFiles } from "./machine/shared-files.ts";

/** For the bus of the devices and for the agent's channel. */
const MODULES = ["virtio_mmio", "vmw_vsock_virtio_transport"];

export interface FirecrackerOptions {
  readonly stateDirectory: string;
  /** An existing cgroup for the machines' cgroups, for example one with a limit for all machines together. */
  readonly cgroupParent?: string | undefined;
  /** The environment in which programs are found; this program's by default. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
  /** The device that Firecracker opens; /dev/kvm by default. */
  readonly kvmDevice?: string | undefined;
}

/** The machines of this host. Enough to find and end them, also where no new machine can start. */
export interface FirecrackerState {
  readonly store: InstanceStore;
  readonly cgroups: Cgroups;
  /** The directory of the machines that belong to no sandbox. */
  readonly transientMachines: string;
  cgroupPath(name: string): string;
}

/** Everything on this host that is needed to make machines. */
export interface FirecrackerHost extends FirecrackerState {
  readonly firecracker: Firecracker;
  readonly kernelVersion: string;
  /** Drivers that guests need and set-up did not download; the kernel may have them built in. */
  readonly missingModules: readonly string[];
  readonly shared: SharedFiles;
  /** The directory of empty disks. */
  readonly blanks: string;
  /** Boot files for the given kernel, or for the one that set-up downloaded. */
  bootFiles(kernel: string | undefined): Promise<BootFiles>;
}

export function findFirecrackerState(options: FirecrackerOptions): FirecrackerState {
  const directory = join(options.stateDirectory, "firecracker");
  return {
    store: new InstanceStore(join(directory, "instances")),
    cgroups: requireCgroups(),
    transientMachines: join(directory, "transient"),
    cgroupPath: (name) => instanceCgroup(name as SandboxId, options),
  };
}

/** Throws when this host lacks something that machines need, with the remedy. */
export async function findFirecrackerHost(options: FirecrackerOptions): Promise<FirecrackerHost> {
  requireLinux("Firecracker machines");
  const firecracker = await findFirecracker(options.environment);
  if ("reason" in firecracker) throw missing(firecracker.code, firecracker.reason, firecracker.hint);
  requireRoot("Firecracker machines", "to run each in its own jail");
  requireShortPath(options.stateDirectory, "firecracker", [API_SOCKET, VSOCK_SOCKET]);
  const directory = join(options.stateDirectory, "firecracker");
  const kernel = await findKernel();
  if ("reason" in kernel) throw missing("kernel_missing", kernel.reason, kernel.hint);
  const host: FirecrackerHost = {
    ...findFirecrackerState(options),
    firecracker,
    kernelVersion: kernel.version,
    missingModules: MODULES.filter((name) => !kernel.modules.some((path) => path.endsWith(`-${name}.ko`))),
    shared: new SharedFiles(join(directory, "shared")),
    blanks: join(directory, "blanks"),
    bootFiles: bootFiles(join(directory, "boot"), kernel),
  };
  await requireKvm(host, { directory, device: options.kvmDevice ?? "/dev/kvm" });
  return host;
}

function bootFiles(directory: string, found: Kernel): FirecrackerHost["bootFiles"] {
  const known = new Map<string, Promise<BootFiles>>();
  return (path = found.path) => {
    const kernel = path === found.path ? found : { path, version: "its own", modules: found.modules };
    const made = known.get(path) ?? makeBootFiles(directory, kernel);
    known.set(path, made);
    made.catch(() => known.delete(path));
    return made;
  };
}
