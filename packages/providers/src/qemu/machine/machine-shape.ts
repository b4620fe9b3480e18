import type { InstanceSpec } from "@sandpiper/core";
import type { GuestImage } from "../../guest/image-build.ts";
import type { GuestKernel } from "../../guest/kernel.ts";

/** Everything that a template and its clones have in common. */
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
