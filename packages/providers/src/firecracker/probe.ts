import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findFirecrackerHost } from "./find-host.ts";
import type { FirecrackerOptions } from "./host.ts";

export async function probeFirecracker(options: FirecrackerOptions): Promise<ProviderStatus> {
  try {
    const { firecracker, cgroups, kernelVersion } = await findFirecrackerHost(options);
    const detail = `Firecracker ${firecracker.version}, KVM, kernel ${kernelVersion}, cgroup version ${cgroups.version}`;
    return { available: true, detail };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { available: false, reason: message, hint: hint ?? "run `sandpiper doctor`" };
  }
}
