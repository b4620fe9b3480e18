import { randomBytes } from "node:crypto";
import { chown, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import { createMachineCgroup } from "../../host/machine-cgroup.ts";
import { CGROUP_FILE, type QemuHost } from "../host.ts";
import { type MemoryArguments, machineArguments, TRANSLATION_MIB } from "./machine-arguments.ts";
import type { MachineShape } from "./machine-shape.ts";
import { type StartedMachine, startMachine } from "./start-machine.ts";

/** Names in a machine's directory. */
export const DISK = "disk.qcow2";
export const BASE_DISK = "base.qcow2";
export const VOLUMES_DISK = "volumes.img";

const INSTANCE_FILE = "instance.txt";

/** Above all users of a normal host, and below the numbers that the kernel reads as negative. */
const FIRST_UID = 0x6000_0000;
const UID_DIGITS = 7;
/** For QEMU itself, the queues of its devices and its disk caches. */
const QEMU_MEMORY_MIB = 96;
/** For disks and migration, in addition to one thread for each processor. */
const QEMU_THREADS = 96;
const SEED_BYTES = 64;
/** A fixed size, because a cloned guest has read the size of the file already. */
const INSTANCE_FILE_BYTES = 512;

export interface LaunchOptions {
  /** A unique id, from which its cgroup, user and hostname follow. */
  readonly name: string;
  /** Holds the disks already. */
  readonly directory: string;
  readonly shape: MachineShape;
  readonly memory: MemoryArguments;
  readonly hasBaseDisk: boolean;
  /** The saved state to resume from; without one the machine boots. */
  readonly stateFile?: string | undefined;
  readonly ignoresShared: boolean;
  readonly signal: AbortSignal;
}

export interface LaunchedMachine extends StartedMachine {
  readonly name: string;
  readonly directory: string;
}

/** Starts the machine whose disks are in the directory. One with a state file waits for `loadState`. */
export async function launchMachine(host: QemuHost, options: LaunchOptions): Promise<LaunchedMachine> {
  const { name, directory, shape, memory, stateFile, signal } = options;
  const uid = FIRST_UID + Number.parseInt(name.replaceAll("-", "").slice(0, UID_DIGITS), 16);
  const [cgroupEntrances] = await Promise.all([
    createMachineCgroup(host.cgroups, host.cgroupPath(name), {
      memoryBytes: (shape.memoryMib + TRANSLATION_MIB + QEMU_MEMORY_MIB) * 2 ** 20,
      vcpuCount: shape.vcpuCount,
      maxThreads: QEMU_THREADS + Math.ceil(shape.vcpuCount),
    }),
    writeInstanceFile(join(directory, INSTANCE_FILE), name, shape),
    chown(directory, uid, uid),
  ]);
  const args = machineArguments({
    qemuVersion: host.qemu.version,
    accelerator: host.accelerator,
    memoryMib: shape.memoryMib,
    processors: Math.ceil(shape.vcpuCount),
    kernel: shape.kernel,
    isIncoming: stateFile !== undefined,
    disks: {
      base: shape.image.path,
      path: DISK,
      backing: options.hasBaseDisk ? BASE_DISK : undefined,
      volumes: shape.volumesMib === undefined ? undefined : VOLUMES_DISK,
    },
    memory,
    instanceFile: INSTANCE_FILE,
    uid,
  });
  const command = [host.qemu.program, ...host.qemu.args, ...args];
  const becoming = { shell: host.shell, directory, stateFile, cgroupEntrances, command };
  const started = await startMachine({ ...becoming, ignoresShared: options.ignoresShared, signal });
  return { ...started, name, directory };
}

/**
 * Gives a machine that was started under another name to an instance. It keeps its cgroup, because moving a running process
 * to another takes many milliseconds.
 */
export async function moveMachine(host: QemuHost, machine: LaunchedMachine, id: SandboxId): Promise<void> {
  await writeFile(join(host.store.directory(id), CGROUP_FILE), machine.name, { mode: 0o600 });
  await host.store.guard(id);
  await rename(machine.directory, host.machineDirectory(id));
}

/** Only the machine's user and root may enter it. */
export async function makeMachineDirectory(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}

/** The guest reads the file when it boots, and again when it resumes from a saved state. */
async function writeInstanceFile(path: string, name: string, { maxProcesses }: MachineShape): Promise<void> {
  const seed = randomBytes(SEED_BYTES).toString("hex");
  const text = `hostname sandbox-${name.slice(0, 8)}\nseed ${seed}\nprocesses ${maxProcesses}\n`;
  await writeFile(path, text.padEnd(INSTANCE_FILE_BYTES, "\n"), { mode: 0o600 });
}
