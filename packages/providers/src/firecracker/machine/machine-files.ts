/** Names in a machine's directory, which is all that its Firecracker sees of the filesystem. */
export const API_SOCKET = "api.sock";
export const VSOCK_SOCKET = "vsock.sock";
export const CONSOLE_LOG = "console.log";
export const MACHINE_LOG = "machine.log";
export const KERNEL = "kernel";
export const INITRAMFS = "initramfs";
export const BASE_DISK = "base.ext4";
export const DISK = "disk.ext4";
/** The directory of the snapshot that the machine runs from. */
export const SNAPSHOT = "snapshot";
export const STATE = "state";
export const MEMORY = "memory";
