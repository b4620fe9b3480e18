import type { CheckpointRequirements } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { GuestImage } from "../guest/image-build.ts";
import { cpuFeatures } from "../host/cpu-features.ts";
import type { QemuHost } from "./host.ts";
import { DEVICES, TRANSLATED_PROCESSOR } from "./machine/machine-arguments.ts";

/** A saved machine can be restored only with the same devices and the same image. */
export function checkpointRequirements(host: QemuHost, image: GuestImage): CheckpointRequirements {
  return {
    runtime: `qemu ${host.qemu.version}`,
    platform: host.accelerator,
    architecture: process.arch,
    agentGeneration: String(PROTOCOL_GENERATION),
    devices: String(DEVICES),
    image: image.sha,
    // Translated code runs on a processor that QEMU emulates.
    cpuFeatures: host.accelerator === "kvm" ? cpuFeatures() : TRANSLATED_PROCESSOR,
  };
}
