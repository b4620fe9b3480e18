import type { InstanceSpec } from "@sandpiper/core";
import type { GuestImage } from "../../guest/image-build.ts";

export interface MachineShape {
  /** Without an image the guest stays in its initramfs. */
  readonly image?: GuestImage | undefined;
  readonly memoryMib: number;
  readonly vcpuCount: number;
  readonly diskMib: number;
  readonly maxProcesses: number;
  readonly vsockCid: number;
}

export function machineShape(spec: InstanceSpec, image: GuestImage): MachineShape {
  const { memoryMib, vcpuCount, diskMib, maxProcesses, vsockCid } = spec;
  return { image, memoryMib, vcpuCount, diskMib, maxProcesses, vsockCid };
}
