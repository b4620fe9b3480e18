import type { ErrorReasonEntry } from "../error-reason.ts";

export const machineReasons = {
  boot_failed: {
    code: "internal",
    meaning: "The instance did not start.",
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  },
  copy_failed: {
    code: "internal",
    meaning: "A disk file could not be copied.",
    hint: "check that the disk has free space",
  },
  firecracker_gone: {
    code: "unavailable",
    meaning: "Firecracker does not answer; its process has probably ended.",
    hint: "create a new sandbox",
  },
  firecracker_missing: {
    code: "failed_precondition",
    meaning: "The host has no Firecracker.",
    hint: "run `npm run setup` in Sandpiper's directory",
  },
  firecracker_refused: {
    code: "internal",
    meaning: "Firecracker refused a request.",
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
    details: { route: "string", status: "number", fault: "string" },
  },
  firecracker_too_old: {
    code: "failed_precondition",
    meaning: "The host's Firecracker is too old.",
    hint: "install a newer Firecracker",
  },
  image_build_failed: {
    code: "failed_precondition",
    meaning: "A disk image could not be built from the root filesystem.",
    hint: "install e2fsprogs 1.43 or newer, and check that the disk has free space",
  },
  image_missing: {
    code: "failed_precondition",
    meaning: "The disk image for machines is missing.",
    hint: "run `npm run setup image` in Sandpiper's directory",
  },
  jailer_missing: {
    code: "failed_precondition",
    meaning: "Firecracker's jailer is missing.",
    hint: "install the jailer next to Firecracker",
  },
  kernel_missing: {
    code: "failed_precondition",
    meaning: "The kernel for machines is missing.",
    hint: "run `npm run setup` in Sandpiper's directory",
  },
  kvm_missing: {
    code: "failed_precondition",
    meaning: "The host has no KVM, or does not allow it.",
    hint: "enable virtualization, nested virtualization on a virtual host, or use the provider qemu",
  },
  kvm_not_permitted: {
    code: "failed_precondition",
    meaning: "The KVM device cannot be opened.",
    hint: "run as root on the host, give this container the device, or use the provider qemu",
  },
  kvm_unusable: {
    code: "failed_precondition",
    meaning: "KVM exists but could not run a guest.",
    hint: "use the provider qemu",
  },
  machine_ended: {
    code: "gone",
    meaning: "The machine of the project has ended.",
    hint: "create a new sandbox, which starts a new machine",
  },
  machine_engine: {
    code: "unavailable",
    meaning: "The container engine in the machine did not start.",
    hint: "raise vmDocker.memoryMib, or rebuild the machine's image with `npm run setup docker-image`",
  },
  machine_not_adopted: {
    code: "unimplemented",
    meaning: "Machines of this driver end with their program and cannot be adopted.",
    hint: "remove the machine, and create a new sandbox",
  },
  machine_removed: {
    code: "canceled",
    meaning: "The machine of the project was removed while it started.",
    hint: "create a new sandbox, which starts a new machine",
  },
  machines_shut_down: {
    code: "unavailable",
    meaning: "The program is shutting down and starts no machines.",
    hint: "retry when it runs again",
  },
  migration_failed: {
    code: "internal",
    meaning: "QEMU could not save or load the state of a machine.",
    hint: "if it happens again, please report it",
  },
  mkfs_failed: {
    code: "failed_precondition",
    meaning: "mkfs.ext4 could not create a filesystem.",
    hint: "install e2fsprogs, and check that the disk has free space",
  },
  monitor_gone: {
    code: "unavailable",
    meaning: "QEMU's monitor does not answer because the machine has ended.",
    hint: "create a new sandbox",
  },
  monitor_refused: {
    code: "internal",
    meaning: "QEMU refused a command.",
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  },
  no_such_kernel: {
    code: "invalid_argument",
    meaning: "The kernel cannot be read.",
    hint: "give the absolute path of an uncompressed or bzImage Linux kernel, or none to use Debian's",
  },
  no_such_machine: {
    code: "not_found",
    meaning: "The machine to adopt does not exist.",
    hint: "create a new sandbox, which starts a new machine",
  },
  no_such_rootfs: {
    code: "invalid_argument",
    meaning: "The root filesystem does not exist.",
    hint: 'give "host", or the absolute path of a root filesystem',
  },
  platform_not_supported: {
    code: "failed_precondition",
    meaning: "The machine driver does not run on this operating system.",
    hint: "leave the driver out: Sandpiper chooses the one for this system",
    details: { driver: "string", wanted: "string", platform: "string" },
  },
  qemu_missing: {
    code: "failed_precondition",
    meaning: "The host has no QEMU.",
    hint: "run `npm run setup` in Sandpiper's directory",
  },
  relative_rootfs: {
    code: "invalid_argument",
    meaning: "The path of the root filesystem is not absolute.",
    hint: 'give "host", or the absolute path of a root filesystem',
  },
  rootfs_not_a_directory: {
    code: "invalid_argument",
    meaning: "The root filesystem is not a directory.",
    hint: 'give "host", or the absolute path of a root filesystem',
  },
  rootfs_not_a_filesystem: {
    code: "invalid_argument",
    meaning: "The file is neither an ext4 image nor a tar archive.",
    hint: "give a directory, an ext4 image, or an archive of a container image",
  },
  rootfs_not_an_archive: {
    code: "invalid_argument",
    meaning: "The archive does not hold a container image or root filesystem.",
    hint: "give the output of `docker save` for one image, of `docker export`, or an OCI layout as a tar archive",
  },
  rootfs_not_supported: {
    code: "invalid_argument",
    meaning: "The provider cannot use this root filesystem.",
    hint: "leave rootfs out, or use another provider",
  },
  rootfs_overlaps_state: {
    code: "invalid_argument",
    meaning: "The root filesystem overlaps the directory in which Sandpiper keeps its state.",
    hint: "use another directory",
  },
  set_up_failed: {
    code: "failed_precondition",
    meaning: "The set-up of virtual machines failed.",
    hint: "run `npm run setup` in Sandpiper's directory",
  },
  set_up_impossible: {
    code: "failed_precondition",
    meaning: "The host lacks something that virtual machines need.",
    hint: "install the missing parts",
  },
  unusable_image: {
    code: "invalid_argument",
    meaning: "The node has no image of this name that the provider can use.",
    hint: 'use "host" or an absolute path, or ask the operator which images the node has',
    details: { image: "string?", provider: "string?", imagesDir: "string?" },
  },
  unusable_kernel: {
    code: "invalid_argument",
    meaning: "The file is not a usable Linux kernel.",
    hint: "give the path of an uncompressed Linux kernel (vmlinux), or none to use Debian's",
  },
  unusable_path: {
    code: "failed_precondition",
    meaning: "QEMU cannot be started with an empty path or one with line breaks.",
    hint: "use paths without line breaks",
  },
  vfkit_missing: {
    code: "failed_precondition",
    meaning: "The host has no vfkit, which runs virtual machines on macOS.",
    hint: "install it: brew install vfkit",
  },
  wsl_failed: {
    code: "failed_precondition",
    meaning: "wsl.exe failed.",
    hint: "run `wsl.exe --status`; `wsl.exe --install` installs WSL 2",
  },
} as const satisfies Record<string, ErrorReasonEntry>;
