import { readFileSync } from "node:fs";
import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { GuestImage } from "../guest/guest-image.ts";
import type { QemuHost } from "./host.ts";
import { DEVICES, TRANSLATED_PROCESSOR } from "./machine/machine-arguments.ts";

/** A saved machine goes on with the same devices, and over the same image. */
export function checkpointRequirements(host: QemuHost, image: GuestImage): CheckpointRequirements {
  return {
    runtime: `qemu ${host.qemu.version}`,
    platform: host.accelerator,
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    devices: String(DEVICES),
    image: image.sha,
    // Translated code runs on a processor that QEMU makes up.
    cpuFeatures: host.accelerator === "kvm" ? findCpuFeatures() : TRANSLATED_PROCESSOR,
  };
}

function findCpuFeatures(): string {
  const text = readFileSync("/proc/cpuinfo", "utf8");
  return /^(?:flags|Features)\s*:\s*(.*)$/m.exec(text)?.[1]?.split(/\s+/).toSorted().join(" ") ?? "";
}
