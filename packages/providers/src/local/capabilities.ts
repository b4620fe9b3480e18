import type { ProviderCapabilities } from "@sandpiper/core";

export const localCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "none",
  checkpoint: "none",
  limits: Object.freeze({ memory: false, cpu: false, processes: false, disk: false }),
  supportsAdopt: false,
  supportsUsers: false,
  supportsContainers: false,
});
