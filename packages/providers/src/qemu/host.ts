import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { findKernel, type GuestKernel, guestKernel, type Kernel } from "../guest/kernel.ts";
import { type Cgroups, findCgroups } from "../host/cgroups.ts";
import { findAgent } from "../host/find-agent.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { findQemu, type Qemu } from "./find-qemu.ts";
import { findAccelerator } from "./machine/accelerator.ts";
import { type Accelerator, MONITOR_SOCKET } from "./machine/machine-arguments.ts";
import { WaitingShell } from "./machine/waiting-shell.ts";

/** What the kernel takes as the path of a socket. */
const MAX_SOCKET_PATH_BYTES = 107;
const ID_BYTES = 36;

export interface QemuOptions {
  readonly stateDirectory: string;
  /** An existing cgroup to make the machines' cgroups in, for example one with a limit for all of them together. */
  readonly cgroupParent?: string | undefined;
}

/** Where machines are on this host. What runs can be found and ended without anything that machines are made with. */
export interface QemuState {
  readonly stateDirectory: string;
  readonly store: InstanceStore;
  readonly cgroups: Cgroups;
  /** Where machines that are no instances are. */
  readonly transientMachines: string;
  readonly templates: string;
  /** Of the directory that QEMU starts in. */
  machineDirectory(id: SandboxId): string;
  cgroupPath(name: string): string;
}

/** Everything on this host that machines are made with. */
export interface QemuHost extends QemuState {
  readonly qemu: Qemu;
  readonly shell: WaitingShell;
  readonly accelerator: Accelerator;
  readonly kernelVersion: string;
  /** Boot files for the kernel at `path`, or for Debian's. */
  guestKernel(path?: string): Promise<GuestKernel>;
}

/** Looks for what this host must have; what is missing is said with what to do about it. */
export function findQemuState(options: QemuOptions): QemuState {
  if (process.platform !== "linux") {
    throw missing("not_linux", `QEMU machines need Linux; this is ${process.platform}`, "use a Linux machine");
  }
  if (process.getuid?.() !== 0) {
    const hint = 'run it again as root: sudo env "PATH=$PATH" …';
    throw missing("not_root", "QEMU machines need root, to run as users of their own and in cgroups", hint);
  }
  const directory = join(options.stateDirectory, "qemu");
  const longest = join(directory, "instances", "x".repeat(ID_BYTES), "machine", MONITOR_SOCKET);
  if (Buffer.byteLength(longest) > MAX_SOCKET_PATH_BYTES) {
    const message = `the path of the state directory ${options.stateDirectory} is too long for sockets in it`;
    throw missing("unusable_state_directory", message, "set SANDPIPER_HOME to a shorter path");
  }
  const cgroups = findCgroups();
  if (cgroups === undefined) {
    const hint = "run `npm run setup` in Sandpiper's directory, which mounts them or names what is missing";
    throw missing("cgroups_missing", "this host has no cgroups with the controllers cpu, memory and pids", hint);
  }
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

/** Looks for what machines are made with: what set-up provides. */
export async function findQemuHost(place: QemuState): Promise<QemuHost> {
  const agent = findAgent();
  const qemu = await findQemu();
  if ("reason" in qemu) throw missing("qemu_missing", qemu.reason, qemu.hint);
  const kernel = await findKernel();
  if ("reason" in kernel) throw missing("kernel_missing", kernel.reason, kernel.hint);
  const kernels = guestKernels(join(place.stateDirectory, "qemu/boot"), agent);
  const accelerator = await findAccelerator(qemu, () => kernels(kernel));
  return {
    ...place,
    qemu,
    shell: new WaitingShell(qemu.env),
    accelerator,
    kernelVersion: kernel.version,
    guestKernel: (path) => kernels(path === undefined ? kernel : { ...kernel, path }),
  };
}

/** Whether set-up provides what was not found. */
export function isProvidable({ reason }: SandboxError): boolean {
  return reason === "agent_missing" || reason === "qemu_missing" || reason === "kernel_missing";
}

/** Made once for each kernel: that reads the kernel and the agent whole. */
function guestKernels(directory: string, agent: string): (kernel: Kernel) => Promise<GuestKernel> {
  const known = new Map<string, Promise<GuestKernel>>();
  return (kernel) => {
    const made = known.get(kernel.path) ?? guestKernel({ directory, kernel, agent });
    known.set(kernel.path, made);
    made.catch(() => known.delete(kernel.path));
    return made;
  };
}

function missing(reason: string, message: string, hint: string): SandboxError {
  return new SandboxError("failed_precondition", { reason, message, hint });
}
