import type { ProviderCapabilities } from "@sandpiper/core";

export const dockerCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "container",
  checkpoint: "filesystem",
  // Engines limit the disk of a container only on few filesystems.
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: true,
});
