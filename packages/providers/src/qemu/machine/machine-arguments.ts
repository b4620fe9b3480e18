import type { GuestKernel } from "../../guest/kernel.ts";
import { isAtLeast } from "../../host/program-version.ts";

/** How guest code runs: on the processor through KVM, or translated by QEMU (TCG). */
export type Accelerator = "kvm" | "tcg";

export interface Machine {
  readonly qemuVersion: string;
  readonly accelerator: Accelerator;
  readonly memoryMib: number;
  readonly processors: number;
  readonly kernel: Omit<GuestKernel, "sha">;
  /** Waits for a saved state, which includes the kernel in memory. */
  readonly isIncoming: boolean;
  /** Without disks the guest stays in its initramfs. */
  readonly disks?: DiskArguments | undefined;
  readonly memory: MemoryArguments;
  /** A file in the machine's directory with the guest's hostname, seed and limits. */
  readonly instanceFile?: string | undefined;
  /** The user that QEMU switches to once it has opened its files. */
  readonly uid: number;
}

interface DiskArguments {
  /** The read-only root filesystem that all machines share. */
  readonly base: string;
  /** The machine's own disk, in its directory. */
  readonly path: string;
  /** The disk below it. */
  readonly backing?: string | undefined;
  /** A raw disk for volumes. */
  readonly volumes?: string | undefined;
}

/** Anonymous memory, or a file. A shared file receives the writes; a private one is copied on write. */
export type MemoryArguments = { readonly file?: undefined } | { readonly file: string; readonly isShared: boolean };

/** All features that QEMU can translate except fast byte copies: translated, these move one byte at a time, and guests without them copy words. */
export const TRANSLATED_PROCESSOR = "max,-erms,-fsrm";

/** The limit of translated code; QEMU's default is a gigabyte. */
export const TRANSLATION_MIB = 64;

/** Raised when the devices change, because a saved machine cannot be restored with other devices. */
export const DEVICES = 1;

/** Names in the machine's directory, which is all that QEMU sees of the filesystem once it runs. */
export const MONITOR_SOCKET = "monitor.sock";
export const AGENT_SOCKET = "agent.sock";
export const CONSOLE_LOG = "console.log";

/** QEMU's command line, with only the devices that a sandbox needs. */
export function machineArguments(machine: Machine): string[] {
  const { accelerator, memoryMib, processors, instanceFile } = machine;
  const accel =
    accelerator === "kvm" ? "kvm" : `tcg,tb-size=${TRANSLATION_MIB},thread=${processors === 1 ? "single" : "multi"}`;
  return [
    ...["-M", "q35,memory-backend=ram,usb=off,smbus=off,sata=off,hpet=off,vmport=off", "-accel", accel],
    ...[
      "-cpu",
      accelerator === "kvm" ? "host" : TRANSLATED_PROCESSOR,
      "-smp",
      String(processors),
      "-m",
      `${memoryMib}M`,
    ],
    ...["-object", JSON.stringify(memoryObject(machine))],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...bootArguments(machine),
    ...["-chardev", `file,id=console,path=${CONSOLE_LOG}`, "-serial", "chardev:console"],
    ...["-qmp", `unix:${MONITOR_SOCKET},server=on,wait=off`],
    ...["-device", "virtio-serial-pci,max_ports=2"],
    ...["-chardev", `socket,id=agent,path=${AGENT_SOCKET},server=on,wait=off`],
    ...["-device", "virtserialport,chardev=agent,name=agent"],
    ...(machine.disks === undefined ? [] : diskArguments(machine.disks)),
    ...(instanceFile === undefined ? [] : ["-fw_cfg", `name=opt/sandpiper/instance,file=${instanceFile}`]),
    ...privilegeArguments(machine),
  ];
}

/** A machine that waits for a state needs a kernel too: without one, QEMU numbers the fw_cfg files differently. */
function bootArguments({ kernel, isIncoming }: Machine): string[] {
  if (isIncoming) return ["-kernel", kernel.stub, "-incoming", "defer"];
  return ["-kernel", kernel.path, "-initrd", kernel.initramfs, "-append", kernel.commandLine];
}

function memoryObject({ memoryMib, memory }: Machine): object {
  const common = { id: "ram", size: memoryMib * 2 ** 20 };
  if (memory.file === undefined) return { "qom-type": "memory-backend-ram", ...common };
  return { "qom-type": "memory-backend-file", ...common, "mem-path": memory.file, share: memory.isShared };
}

function diskArguments(disks: DiskArguments): string[] {
  return [
    ...["-blockdev", JSON.stringify(baseNode(disks.base)), "-device", "virtio-blk-pci,drive=base,serial=base"],
    ...["-blockdev", JSON.stringify(diskNode(disks)), "-device", "virtio-blk-pci,drive=disk,serial=disk"],
    ...(disks.volumes === undefined
      ? []
      : [
          ...["-blockdev", JSON.stringify(volumesNode(disks.volumes))],
          ...["-device", "virtio-blk-pci,drive=volumes,serial=volumes"],
        ]),
  ];
}

function baseNode(path: string): object {
  return { driver: "raw", "node-name": "base", "read-only": true, file: fileNode(path) };
}

function volumesNode(path: string): object {
  const file = { ...fileNode(path), discard: "unmap" };
  return { driver: "raw", "node-name": "volumes", discard: "unmap", "detect-zeroes": "unmap", file };
}

function diskNode({ path, backing }: DiskArguments): object {
  const file = { ...fileNode(path), discard: "unmap" };
  const common = { driver: "qcow2", "node-name": "disk", discard: "unmap", file };
  if (backing === undefined) return common;
  return { ...common, backing: { driver: "qcow2", "read-only": true, file: fileNode(backing) } };
}

/** By default QEMU drops the host's page cache of a disk after a migration. These files are local, and all machines share the base. */
function fileNode(filename: string): object {
  return { driver: "file", filename, "drop-cache": false };
}

/** QEMU itself drops its privileges once it has opened its files; from then on it sees only the directory it started in. */
export function privilegeArguments({ qemuVersion, uid }: Pick<Machine, "qemuVersion" | "uid">): string[] {
  const filter = ["-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny"];
  const user = `${uid}:${uid}`;
  if (isAtLeast(qemuVersion, "9.1")) return [...filter, "-run-with", `user=${user},chroot=.`];
  const chroot = isAtLeast(qemuVersion, "8.1") ? ["-run-with", "chroot=."] : ["-chroot", "."];
  return [...filter, "-runas", user, ...chroot];
}
