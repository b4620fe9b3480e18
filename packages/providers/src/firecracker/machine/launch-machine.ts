import { chown, link, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec } from "@sandpiper/core";
import { makeBlankDisk } from "../../guest/format-disk.ts";
import type { GuestImage } from "../../guest/image-build.ts";
import { createMachineCgroup } from "../../host/machine-cgroup.ts";
import type { ApiClient } from "../api/api-client.ts";
import type { FirecrackerHost } from "../host.ts";
import { AGENT_PORT } from "../vsock/vsock-connection.ts";
import type { BootFiles } from "./boot-files.ts";
import { linkSnapshot } from "./checkpoint.ts";
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
import { startMachine } from "./start-machine.ts";

/** For Firecracker itself, the queues of its devices and the page cache of its disks. */
const FIRECRACKER_MEMORY_MIB = 96;
/** Firecracker starts few threads; the limit contains a compromised process. */
const FIRECRACKER_THREADS = 512;
/** The room for its log, in addition to its largest file. */
const LOG_MIB = 16;

interface MachineShape extends Pick<InstanceSpec, "memoryMib" | "vcpuCount" | "diskMib" | "maxProcesses" | "vsockCid"> {
  /** Without an image the guest stays in its initramfs. */
  readonly image?: GuestImage | undefined;
}

export interface LaunchOptions {
  readonly name: string;
  /** The machine's directory, without a jail yet. */
  readonly directory: string;
  readonly shape: MachineShape;
  readonly signal: AbortSignal;
}

export function guestHostname(name: string): string {
  return `sandbox-${name.slice(0, 8)}`;
}

/** Boots a machine, without waiting for its agent. */
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
  await api.send("PUT /machine-config", { vcpu_count: processors, mem_size_mib: shape.memoryMib }, signal);
  await api.send(
    "PUT /boot-source",
    { kernel_image_path: KERNEL, initrd_path: INITRAMFS, boot_args: bootArguments(name, shape.maxProcesses) },
    signal,
  );
  if (shape.image !== undefined) {
    // The guest tells the disks apart by their order. A root device would add arguments to the kernel's.
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

/** Restores a saved machine. It reads its memory from the saved file and copies pages on write. */
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
  return await startMachine({ command, directory, cgroupEntrances, signal });
}

async function linkBase({ shared }: FirecrackerHost, { machine }: Jail, { image }: MachineShape): Promise<void> {
  if (image !== undefined) await shared.link(image.path, `${image.sha.slice(0, 32)}.ext4`, join(machine, BASE_DISK));
}

async function makeDisk(host: FirecrackerHost, jail: Jail, { diskMib }: MachineShape): Promise<void> {
  const blank = join(host.blanks, `${diskMib}.ext4`);
  await makeBlankDisk(blank, diskMib, copySparse);
  await copySparse(blank, join(jail.machine, DISK));
  await own(jail, DISK);
}

function own({ machine, uid }: Jail, name: string): Promise<void> {
  return chown(join(machine, name), uid, uid);
}

/**
 * The kernel's arguments, then the guest's identity and the agent's arguments, which the kernel passes on. The latter are one
 * word without dashes, because Firecracker and the kernel read `--` differently. A panic must reboot at once: a reboot of
 * its guest is the only end that Firecracker knows.
 */
function bootArguments(name: string, maxProcesses: number): string {
  return [
    ...["console=ttyS0", "quiet", "loglevel=4", "panic=-1", "reboot=k", "tsc=reliable", "mitigations=off"],
    ...["random.trust_cpu=on", "no_timer_check", "8250.nr_uarts=1", "cryptomgr.notests"],
    // The keyboard controller serves only for the reset.
    ...["i8042.noaux", "i8042.nomux", "i8042.dumbkbd"],
    ...[`sandpiper.hostname=${guestHostname(name)}`, `sandpiper.processes=${maxProcesses}`],
    `init,vsock:${AGENT_PORT},user`,
  ].join(" ");
}
