import type { KillList } from "../host/kill-list.ts";
import { findMachineHost, type MachineHost } from "../host/machine-host.ts";
import type { Firecracker } from "./find-firecracker.ts";
import type { BootFiles } from "./machine/boot-files.ts";
import type { SharedFiles } from "./machine/shared-files.ts";
import { explainMachine } from "./machine/start-machine.ts";

export interface FirecrackerOptions {
  readonly stateDirectory: string;
  /** The environment in which programs are found; this program's by default. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
  /** The program; by default it is searched for in the environment. */
  readonly firecrackerPath?: string | undefined;
  /** The device that Firecracker opens; $SANDPIPER_KVM or /dev/kvm by default. */
  readonly kvmDevice?: string | undefined;
  /** The kernel of machines that do not name one; the one that set-up downloaded by default. */
  readonly kernel?: string | undefined;
  /** How long the guest of the KVM check may take to boot; 10 s by default. */
  readonly bootTimeoutMs?: number | undefined;
  /** How long a machine may take to accept the connection that follows a checkpoint; 10 s by default. */
  readonly connectTimeoutMs?: number | undefined;
  readonly killList?: KillList | undefined;
}

/** Everything on this host that is needed to make machines. */
export interface FirecrackerHost extends MachineHost {
  readonly firecracker: Firecracker;
  readonly kernelVersion: string;
  /** Why machines have no network; empty if they have one. */
  readonly networkProblem: string;
  /** Drivers that guests need and set-up did not download; the kernel may have them built in. */
  readonly missingModules: readonly string[];
  readonly shared: SharedFiles;
  /** The directory of empty disks. */
  readonly blanks: string;
  /** Boot files for the given kernel, or for the default. */
  bootFiles(kernel: string | undefined): Promise<BootFiles>;
}

/** Enough to find and end machines, also where no new machine can start. */
export function findFirecrackerState({
  stateDirectory,
  killList,
}: Pick<FirecrackerOptions, "stateDirectory" | "killList">): MachineHost {
  const place = { name: "firecracker", stateDirectory, killList };
  return findMachineHost({ emulator: "Firecracker", ...place, explain: explainMachine });
}
