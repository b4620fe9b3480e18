export type ProviderName = "gvisor" | "docker" | "qemu";
