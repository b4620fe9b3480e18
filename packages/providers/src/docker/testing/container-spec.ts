import type { ContainerOptions, InstanceSpec } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";

export function containerSpec(container?: ContainerOptions, id: SandboxId = createSandboxId()): InstanceSpec {
  return {
    id,
    rootfs: "host",
    kernel: undefined,
    memoryMib: 128,
    vcpuCount: 1,
    diskMib: 1024,
    maxProcesses: 64,
    env: {},
    container,
    vsockCid: 3,
    labels: {},
  };
}
