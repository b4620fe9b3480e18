import { join } from "node:path";
import type { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { findKernel, type GuestKernel, guestKernel, type Kernel } from "../guest/kernel.ts";
import type { Cgroups } from "../host/cgroups.ts";
import { findAgent } from "../host/find-agent.ts";
import { missing, requireCgroups, requireLinux, requireRoot, requireShortPath } from "../host/host-requirements.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { findQemu, type Qemu } from "./find-qemu.ts";
import { findAccelerator } from "./machine/accelerator.ts";
import { type Accelerator, MONITOR_SOCKET } from "./machine/machine-arguments.ts";
import { WaitingShell } from "./machine/waiting-shell.ts";

export interface QemuOptions {
  readonly stateDirectory: string;
  /** An existing cgroup for the machines' cgroups, for example one with a limit for all machines together. */
  readonly cgroupParent?: string | undefined;
}

/** The machines of this host. Needs nothing that set-up installs, so that machines can always be found and ended. */
export interface QemuState {
  readonly stateDirectory: string;
  readonly store: InstanceStore;
  readonly cgroups: Cgroups;
  /** The directory of the machines that belong to no sandbox. */
  readonly transientMachines: string;
  readonly templates: string;
  /** The directory that QEMU starts in. */
  machineDirectory(id: SandboxId): string;
  cgroupPath(name: string): string;
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
  return {
    stateDirectory: options.stateDirectory,
    store,
    cgroups,
    transientMachines: join(directory, "transient"),
    templates: join(directory, "templates"),
    machineDirectory: (id) => join(store.directory(id), "machine"),
    cgroupPath: (name) => instanceCgroup(name as SandboxId, options),
  };
}

/** Finds the parts that set-up installs. */
export async function findQemuHost(state: QemuState): Promise<QemuHost> {
  const agent = findAgent();
  const qemu = await findQemu();
  if ("reason" in qemu) throw missing("qemu_missing", qemu.reason, qemu.hint);
  const kernel = await findKernel();
  if ("reason" in kernel) throw missing("kernel_missing", kernel.reason, kernel.hint);
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
