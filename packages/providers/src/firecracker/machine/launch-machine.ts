import { chown, link, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createMachineCgroup } from "../../host/machine-cgroup.ts";
import type { ApiClient } from "../api/api-client.ts";
import type { FirecrackerHost } from "../host.ts";
import { blankDisk } from "./blank-disk.ts";
import { bootArguments } from "./boot-arguments.ts";
import type { BootFiles } from "./boot-files.ts";
import { linkSnapshot } from "./checkpoint-files.ts";
import { copySparse } from "./copy-sparse.ts";
import { type Jail, jailerCommand, makeJail } from "./jail.ts";
import {
  BASE_DISK,
  DISK,
  INITRAMFS,
  KERNEL,
  MACHINE_LOG,
  MEMORY,
  SNAPSHOT,
  STATE,
  VSOCK_SOCKET,
} from "./machine-files.ts";
import type { MachineShape } from "./machine-shape.ts";
import { startMachine } from "./start-machine.ts";

/** Firecracker itself, its devices' queues and what the kernel keeps of the disks for it. */
const FIRECRACKER_MEMORY_MIB = 96;
/** It starts no programs and few threads; this bounds one that somebody has taken over. */
const FIRECRACKER_THREADS = 512;
/** What its log may take beside what the largest of its files does. */
const LOG_MIB = 16;

export interface LaunchOptions {
  /** An id that no other machine has. */
  readonly name: string;
  /** Of the machine; there is no jail in it yet. */
  readonly directory: string;
  readonly shape: MachineShape;
  readonly signal: AbortSignal;
}

export function guestHostname(name: string): string {
  return `sandbox-${name.slice(0, 8)}`;
}

/** Boots a machine; its agent answers a moment later. */
export async function bootMachine(host: FirecrackerHost, files: BootFiles, options: LaunchOptions): Promise<ApiClient> {
  const { name, directory, shape, signal } = options;
  const jail = await makeJail(host.firecracker, name, directory);
  await Promise.all([
    link(files.kernel, join(jail.machine, KERNEL)),
    link(files.initramfs, join(jail.machine, INITRAMFS)),
    ...(shape.image === undefined ? [] : [linkBase(host, jail, shape), makeDisk(host, jail, shape)]),
  ]);
  const api = await start(host, jail, options);
  const processors = Math.ceil(shape.vcpuCount);
  const identity = { hostname: guestHostname(name), maxProcesses: shape.maxProcesses };
  await api.send("PUT /machine-config", { vcpu_count: processors, mem_size_mib: shape.memoryMib }, signal);
  await api.send(
    "PUT /boot-source",
    { kernel_image_path: KERNEL, initrd_path: INITRAMFS, boot_args: bootArguments(identity) },
    signal,
  );
  if (shape.image !== undefined) {
    // In this order: a guest knows them by it. Neither is a root device, which would add to the kernel's arguments.
    const base = { drive_id: "base", path_on_host: BASE_DISK, is_root_device: false, is_read_only: true };
    const disk = { drive_id: "disk", path_on_host: DISK, is_root_device: false, is_read_only: false };
    await api.send("PUT /drives/base", base, signal);
    await api.send("PUT /drives/disk", disk, signal);
  }
  await api.send("PUT /vsock", { guest_cid: shape.vsockCid, uds_path: VSOCK_SOCKET }, signal);
  await api.send("PUT /entropy", {}, signal);
  await api.send("PUT /actions", { action_type: "InstanceStart" }, signal);
  return api;
}

/** Brings a machine to life that was saved. Its memory is read from the file until it is written to. */
export async function restoreMachine(host: FirecrackerHost, saved: string, options: LaunchOptions): Promise<ApiClient> {
  const { name, directory, shape, signal } = options;
  const jail = await makeJail(host.firecracker, name, directory);
  await Promise.all([
    linkBase(host, jail, shape),
    copySparse(join(saved, DISK), join(jail.machine, DISK)).then(() => own(jail, DISK)),
    linkSnapshot(saved, jail),
  ]);
  const api = await start(host, jail, options);
  await api.send(
    "PUT /snapshot/load",
    {
      snapshot_path: join(SNAPSHOT, STATE),
      mem_backend: { backend_type: "File", backend_path: join(SNAPSHOT, MEMORY) },
      resume_vm: true,
    },
    signal,
  );
  return api;
}

async function start(
  host: FirecrackerHost,
  jail: Jail,
  { directory, shape, signal }: LaunchOptions,
): Promise<ApiClient> {
  const { memoryMib, vcpuCount, diskMib } = shape;
  const [cgroupEntrances] = await Promise.all([
    createMachineCgroup(host.cgroups, host.cgroupPath(jail.name), {
      memoryBytes: (memoryMib + FIRECRACKER_MEMORY_MIB) * 2 ** 20,
      vcpuCount,
      maxThreads: FIRECRACKER_THREADS + Math.ceil(vcpuCount),
    }),
    writeFile(join(jail.machine, MACHINE_LOG), "", { mode: 0o600 }).then(() => own(jail, MACHINE_LOG)),
  ]);
  const command = jailerCommand(host.firecracker, jail, Math.max(memoryMib, diskMib) + LOG_MIB);
  const api = await startMachine({ command, directory, cgroupEntrances, signal });
  await api.send("PUT /logger", { log_path: MACHINE_LOG, level: "Warning" }, signal);
  return api;
}

async function linkBase({ shared }: FirecrackerHost, { machine }: Jail, { image }: MachineShape): Promise<void> {
  if (image !== undefined) await shared.link(image.path, `${image.sha.slice(0, 32)}.ext4`, join(machine, BASE_DISK));
}

async function makeDisk(host: FirecrackerHost, jail: Jail, { diskMib }: MachineShape): Promise<void> {
  const blank = join(host.blanks, `${diskMib}.ext4`);
  await blankDisk(blank, diskMib);
  await copySparse(blank, join(jail.machine, DISK));
  await own(jail, DISK);
}

function own({ machine, uid }: Jail, name: string): Promise<void> {
  return chown(join(machine, name), uid, uid);
}
