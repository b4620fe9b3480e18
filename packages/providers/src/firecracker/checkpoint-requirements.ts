import { readFileSync } from "node:fs";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { GuestImage } from "../guest/guest-image.ts";
import type { FirecrackerHost } from "./host.ts";

/** A saved machine goes on with the same devices, over the same image, and on a processor that can do the same. */
export function checkpointRequirements(host: FirecrackerHost, image: GuestImage): CheckpointRequirements {
  return {
    runtime: `firecracker ${host.firecracker.version}`,
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    image: image.sha,
    cpuFeatures: findCpuFeatures(),
  };
}

function findCpuFeatures(): string {
  const text = readFileSync("/proc/cpuinfo", "utf8");
  return /^(?:flags|Features)\s*:\s*(.*)$/m.exec(text)?.[1]?.split(/\s+/).toSorted().join(" ") ?? "";
}
