import type { GuestKernel } from "../../guest/kernel.ts";
import { privilegeArguments } from "./privilege-arguments.ts";

/** How guest code runs: by the processor's own help, or translated by QEMU. */
export type Accelerator = "kvm" | "tcg";

export interface Machine {
  readonly qemuVersion: string;
  readonly accelerator: Accelerator;
  readonly memoryMib: number;
  readonly processors: number;
  readonly kernel: Omit<GuestKernel, "sha">;
  /** Waits to be told where its memory and state come from, with the kernel in it. */
  readonly isIncoming: boolean;
  /** Without any, the guest stays in its initramfs. */
  readonly disks?: DiskArguments | undefined;
  readonly memory: MemoryArguments;
  /** What the guest is told of itself, as a file in the machine's directory. */
  readonly instanceFile?: string | undefined;
  /** Whom QEMU runs as once it has opened everything. */
  readonly uid: number;
}

interface DiskArguments {
  /** The read-only root filesystem, which all machines share. */
  readonly base: string;
  /** The machine's own disk, in its directory. */
  readonly path: string;
  /** What lies below that. */
  readonly backing?: string | undefined;
}

/** Memory of its own, or a file: one that is shared is written to, one that is not is read where it was not written to. */
export type MemoryArguments = { readonly file?: undefined } | { readonly file: string; readonly isShared: boolean };

/**
 * Everything that QEMU can translate, but no fast copying of bytes: a processor does that in one go, and translated code one byte after the
 * other. Kernels and C libraries that do not find it copy by words.
 */
export const TRANSLATED_PROCESSOR = "max,-erms,-fsrm";

/** What translated code may take; QEMU's own default is a gigabyte. */
export const TRANSLATION_MIB = 64;

/** Raised when machines get other devices: what was saved with the old ones cannot go on with the new. */
export const DEVICES = 1;

/** Names in the machine's directory, where QEMU starts and which is all of the filesystem that it sees afterwards. */
export const MONITOR_SOCKET = "monitor.sock";
export const AGENT_SOCKET = "agent.sock";
export const CONSOLE_LOG = "console.log";

/** QEMU's command line: a machine with nothing in it that a sandbox does not need. */
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

/** One that boots nothing is told of a kernel too: with one, QEMU numbers the files differently that the guest reads. */
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
  ];
}

function baseNode(path: string): object {
  return { driver: "raw", "node-name": "base", "read-only": true, file: fileNode(path) };
}

function diskNode({ path, backing }: DiskArguments): object {
  const file = { ...fileNode(path), discard: "unmap" };
  const common = { driver: "qcow2", "node-name": "disk", discard: "unmap", file };
  if (backing === undefined) return common;
  return { ...common, backing: { driver: "qcow2", "read-only": true, file: fileNode(backing) } };
}

/**
 * A machine that goes on from a state would otherwise have the host forget what it has in memory of the file, in case another host wrote
 * to it. These are this host's own, and the base is all machines'.
 */
function fileNode(filename: string): object {
  return { driver: "file", filename, "drop-cache": false };
}
