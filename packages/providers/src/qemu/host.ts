import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { findKernel, type GuestKernel, guestKernel, networkProblem } from "../guest/kernel.ts";
import { findAgent } from "../host/find-agent.ts";
import { requireLinux, requireRoot, requireShortPath } from "../host/host-requirements.ts";
import type { KillList } from "../host/kill-list.ts";
import { findMachineHost, type MachineHost } from "../host/machine-host.ts";
import { sharedByKey } from "../host/shared.ts";
import { findQemu, type Qemu } from "./find-qemu.ts";
import { findAccelerator } from "./machine/accelerator.ts";
import { type Accelerator, MONITOR_SOCKET } from "./machine/machine-arguments.ts";
import { explainMachine } from "./machine/start-machine.ts";
import { WaitingShell } from "./machine/waiting-shell.ts";

/**
 * Names the cgroup in which a machine was prepared; without the file it follows from the instance's id. It is not in the
 * machine's directory, which QEMU's user can write to.
 */
export const CGROUP_FILE = "cgroup";
const MACHINE = "machine";

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
  /** Why machines have no network; empty if they have one. */
  readonly networkProblem: string;
  /** Boot files for the kernel at `path`, or for Debian's. */
  guestKernel(path?: string): Promise<GuestKernel>;
}

/** Throws when this host lacks something that set-up cannot install, with the remedy. */
export function findQemuState(
  stateDirectory: string,
  { killList }: { readonly killList?: KillList | undefined } = {},
): QemuState {
  requireLinux("QEMU machines");
  requireRoot("QEMU machines", "to run each as its own user and in its own cgroup");
  requireShortPath(stateDirectory, "qemu", [MONITOR_SOCKET]);
  const explain = (directory: string) => explainMachine(join(directory, MACHINE));
  const cgroupName = (directory: string) => readFile(join(directory, CGROUP_FILE), "utf8").catch(() => undefined);
  const host = findMachineHost({ emulator: "QEMU", name: "qemu", stateDirectory, explain, killList, cgroupName });
  const machineDirectory = (id: SandboxId) => join(host.store.directory(id), MACHINE);
  return {
    ...host,
    stateDirectory,
    templates: join(stateDirectory, "qemu/templates"),
    machineDirectory,
  };
}

/** Finds the parts that set-up installs. */
export async function findQemuHost(state: QemuState, initrd?: string): Promise<QemuHost> {
  const agent = findAgent();
  const qemu = await findQemu();
  const kernel = await findKernel();
  const directory = join(state.stateDirectory, "qemu/boot");
  const boot = sharedByKey((path) => guestKernel({ directory, kernel: { ...kernel, path }, agent, initrd }));
  const accelerator = await findAccelerator(qemu, () => boot(kernel.path));
  return {
    ...state,
    qemu,
    shell: new WaitingShell(qemu.env),
    accelerator,
    kernelVersion: kernel.version,
    networkProblem: networkProblem(kernel),
    guestKernel: (path = kernel.path) => boot(path),
  };
}

/** Whether set-up can install the missing part. */
export function isProvidable({ reason }: SandboxError): boolean {
  return reason === "agent_missing" || reason === "qemu_missing" || reason === "kernel_missing";
}
