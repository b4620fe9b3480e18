import type { ProviderCapabilities } from "@sandpiper/core";

export const mockCapabilities: ProviderCapabilities = {
  isolation: "none",
  checkpoint: "memory",
  limits: { memory: false, cpu: false, processes: false, disk: false },
  supportsAdopt: true,
  supportsUsers: false,
  supportsContainers: false,
};
