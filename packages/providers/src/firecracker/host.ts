import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { Cgroups } from "../host/cgroups.ts";
import { requireCgroups } from "../host/host-requirements.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import type { Firecracker } from "./find-firecracker.ts";
import type { BootFiles } from "./machine/boot-files.ts";
import type { SharedFiles } from "./machine/shared-files.ts";

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
