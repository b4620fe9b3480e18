import type { InstanceSpec } from "@sandpiper/core";
import type { GuestImage } from "../../guest/image-build.ts";
import type { GuestKernel } from "../../guest/kernel.ts";

/** Everything that a template and its clones have in common. */
export interface MachineShape extends Pick<InstanceSpec, "memoryMib" | "vcpuCount" | "diskMib" | "maxProcesses"> {
  readonly image: GuestImage;
  readonly kernel: GuestKernel;
  /** The size of a further disk, which outlives the machine. */
  readonly volumesMib?: number | undefined;
}
