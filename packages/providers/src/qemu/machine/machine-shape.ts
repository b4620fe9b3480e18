import type { InstanceSpec } from "@sandpiper/core";
import type { GuestImage } from "../../guest/guest-image.ts";
import type { GuestKernel } from "../../guest/kernel.ts";

/** What machines have in common that can be copies of one. */
export interface MachineShape {
  readonly image: GuestImage;
  readonly kernel: GuestKernel;
  readonly memoryMib: number;
  readonly vcpuCount: number;
  readonly diskMib: number;
  readonly maxProcesses: number;
}

export function machineShape(spec: InstanceSpec, image: GuestImage, kernel: GuestKernel): MachineShape {
  const { memoryMib, vcpuCount, diskMib, maxProcesses } = spec;
  return { image, kernel, memoryMib, vcpuCount, diskMib, maxProcesses };
}
