import type { ProviderCapabilities } from "@sandpiper/core";

export const gvisorCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "user_space_kernel",
  checkpoint: "memory",
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: true }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: false,
});
