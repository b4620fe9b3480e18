import type { ProviderCapabilities } from "@sandpiper/core";

export const vmDockerCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "vm",
  checkpoint: "filesystem",
  // The disk is the machine's, and its containers share it.
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: true,
});
