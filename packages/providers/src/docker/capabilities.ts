import type { ProviderCapabilities } from "@sandpiper/core";

export const dockerCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "container",
  checkpoint: "filesystem",
  // Engines limit a container's disk only on a few filesystems.
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: true,
});
