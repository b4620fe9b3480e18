import { chown, mkdir, rename } from "node:fs/promises";
import type { QemuHost } from "../host.ts";
import { noteCgroup } from "./instance-cgroup-name.ts";
import { INSTANCE_FILE, writeInstanceFile } from "./instance-file.ts";
import { type MemoryArguments, machineArguments } from "./machine-arguments.ts";
import { createMachineCgroup } from "./machine-cgroup.ts";
import type { MachineShape } from "./machine-shape.ts";
import { type StartedMachine, startMachine } from "./start-machine.ts";

/** Names in a machine's directory. */
export const DISK = "disk.qcow2";
export const BASE_DISK = "base.qcow2";

/** Far above any user that a machine has, and below where the kernel takes numbers for negative. */
const FIRST_UID = 0x6000_0000;
const UID_DIGITS = 7;

export interface LaunchOptions {
  /** An id that no other machine has: its cgroup, its user and its hostname follow from it. */
  readonly name: string;
  /** Has its disks already. */
  readonly directory: string;
  readonly shape: MachineShape;
  readonly memory: MemoryArguments;
  readonly hasBaseDisk: boolean;
  /** What it goes on from; without it, it boots. */
  readonly stateFile?: string | undefined;
  readonly ignoresShared: boolean;
  readonly signal: AbortSignal;
}

export interface LaunchedMachine extends StartedMachine {
  readonly name: string;
  readonly directory: string;
}

/** Starts the machine whose disks are in the directory; one that goes on from a state waits to be told to. */
export async function launchMachine(host: QemuHost, options: LaunchOptions): Promise<LaunchedMachine> {
  const { name, directory, shape, memory, stateFile, signal } = options;
  const uid = FIRST_UID + Number.parseInt(name.replaceAll("-", "").slice(0, UID_DIGITS), 16);
  const [cgroupEntrances] = await Promise.all([
    createMachineCgroup(host.cgroups, host.cgroupPath(name), shape),
    writeInstanceFile(directory, { hostname: `sandbox-${name.slice(0, 8)}`, maxProcesses: shape.maxProcesses }),
    chown(directory, uid, uid),
  ]);
  const args = machineArguments({
    qemuVersion: host.qemu.version,
    accelerator: host.accelerator,
    memoryMib: shape.memoryMib,
    processors: Math.ceil(shape.vcpuCount),
    kernel: shape.kernel,
    isIncoming: stateFile !== undefined,
    disks: { base: shape.image.path, path: DISK, backing: options.hasBaseDisk ? BASE_DISK : undefined },
    memory,
    instanceFile: INSTANCE_FILE,
    uid,
  });
  const command = [host.qemu.program, ...host.qemu.args, ...args];
  const becoming = { shell: host.shell, directory, stateFile, cgroupEntrances, command };
  const started = await startMachine({ ...becoming, ignoresShared: options.ignoresShared, signal });
  return { ...started, name, directory };
}

/** Makes the directory of a machine that was started under another name one of that name; its cgroup it keeps. */
export async function moveMachine(machine: LaunchedMachine, directory: string): Promise<void> {
  await noteCgroup(machine.directory, machine.name);
  await rename(machine.directory, directory);
}

/** Only its own user may enter it, and root. */
export async function makeMachineDirectory(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}
