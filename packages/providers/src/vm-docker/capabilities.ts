import type { ProviderCapabilities } from "@sandpiper/core";

export const vmDockerCapabilities: ProviderCapabilities = Object.freeze({
  isolation: "vm",
  checkpoint: "filesystem",
  // All containers of a machine share its disk.
  limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: false }),
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: true,
});
