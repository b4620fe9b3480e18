import type { ProviderCapabilities } from "@sandpiper/core";

export const firecrackerCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "vm",
  checkpoint: "memory",
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: true }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: false,
});
