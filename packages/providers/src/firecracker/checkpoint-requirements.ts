import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { GuestImage } from "../guest/image-build.ts";
import { cpuFeatures } from "../host/cpu-features.ts";
import type { FirecrackerHost } from "./host.ts";

/** A saved machine can be restored only with the same devices, image and processor features. */
export function checkpointRequirements(host: FirecrackerHost, image: GuestImage): CheckpointRequirements {
  return {
    runtime: `firecracker ${host.firecracker.version}`,
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    image: image.sha,
    cpuFeatures: cpuFeatures(),
  };
}
