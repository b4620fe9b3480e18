/** Names in a machine's directory, which is all of the filesystem that its Firecracker sees. */
export const API_SOCKET = "api.sock";
export const VSOCK_SOCKET = "vsock.sock";
export const CONSOLE_LOG = "console.log";
export const MACHINE_LOG = "machine.log";
export const KERNEL = "kernel";
export const INITRAMFS = "initramfs";
export const BASE_DISK = "base.ext4";
export const DISK = "disk.ext4";
/** A directory, while it is being saved and for as long as it runs from what was saved. */
export const SNAPSHOT = "snapshot";
export const STATE = "state";
export const MEMORY = "memory";
