import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { findKernel, type GuestKernel, guestKernel, type Kernel } from "../guest/kernel.ts";
import { findAgent } from "../host/find-agent.ts";
import { requireCgroups, requireLinux, requireRoot, requireShortPath } from "../host/host-requirements.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import type { MachineHost } from "../host/machine-host.ts";
import { findQemu, type Qemu } from "./find-qemu.ts";
import { findAccelerator } from "./machine/accelerator.ts";
import { type Accelerator, MONITOR_SOCKET } from "./machine/machine-arguments.ts";
import { explainMachine } from "./machine/start-machine.ts";
import { WaitingShell } from "./machine/waiting-shell.ts";

/** Names the cgroup in which a machine was prepared; without the file it follows from the instance's id. */
export const CGROUP_FILE = "cgroup";

export interface QemuOptions {
  readonly stateDirectory: string;
  /** An existing cgroup for the machines' cgroups, for example one with a limit for all machines together. */
  readonly cgroupParent?: string | undefined;
}

/** The machines of this host. Needs nothing that set-up installs, so that machines can always be found and ended. */
export interface QemuState extends MachineHost {
  readonly stateDirectory: string;
  readonly templates: string;
  /** The directory that QEMU starts in. */
  machineDirectory(id: SandboxId): string;
}

/** Everything on this host that is needed to make machines. */
export interface QemuHost extends QemuState {
  readonly qemu: Qemu;
  readonly shell: WaitingShell;
  readonly accelerator: Accelerator;
  readonly kernelVersion: string;
  /** Boot files for the kernel at `path`, or for Debian's. */
  guestKernel(path?: string): Promise<GuestKernel>;
}

/** Throws when this host lacks something that set-up cannot install, with the remedy. */
export function findQemuState(options: QemuOptions): QemuState {
  requireLinux("QEMU machines");
  requireRoot("QEMU machines", "to run each as its own user and in its own cgroup");
  requireShortPath(options.stateDirectory, "qemu", [MONITOR_SOCKET]);
  const directory = join(options.stateDirectory, "qemu");
  const cgroups = requireCgroups();
  const store = new InstanceStore(join(directory, "instances"));
  const machineDirectory = (id: SandboxId) => join(store.directory(id), "machine");
  const cgroupPath = (name: string) => instanceCgroup(name as SandboxId, options);
  return {
    emulator: "QEMU",
    stateDirectory: options.stateDirectory,
    store,
    cgroups,
    transientMachines: join(directory, "transient"),
    templates: join(directory, "templates"),
    machineDirectory,
    cgroupPath,
    cgroupOf: async (id) => cgroupPath(await readFile(join(machineDirectory(id), CGROUP_FILE), "utf8").catch(() => id)),
    explain: (id) => explainMachine(machineDirectory(id)),
  };
}

/** Finds the parts that set-up installs. */
export async function findQemuHost(state: QemuState): Promise<QemuHost> {
  const agent = findAgent();
  const qemu = await findQemu();
  const kernel = await findKernel();
  const kernels = guestKernels(join(state.stateDirectory, "qemu/boot"), agent);
  const accelerator = await findAccelerator(qemu, () => kernels(kernel));
  return {
    ...state,
    qemu,
    shell: new WaitingShell(qemu.env),
    accelerator,
    kernelVersion: kernel.version,
    guestKernel: (path) => kernels(path === undefined ? kernel : { ...kernel, path }),
  };
}

/** Whether set-up can install the missing part. */
export function isProvidable({ reason }: SandboxError): boolean {
  return reason === "agent_missing" || reason === "qemu_missing" || reason === "kernel_missing";
}

/** Made once for each kernel, because it reads the kernel and the agent completely. */
function guestKernels(directory: string, agent: string): (kernel: Kernel) => Promise<GuestKernel> {
  const known = new Map<string, Promise<GuestKernel>>();
  return (kernel) => {
    const made = known.get(kernel.path) ?? guestKernel({ directory, kernel, agent });
    known.set(kernel.path, made);
    made.catch(() => known.delete(kernel.path));
    return made;
  };
}
