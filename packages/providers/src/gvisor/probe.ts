import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findGvisorHost, type GvisorOptions } from "./host.ts";

export async function probeGvisor(options: GvisorOptions): Promise<ProviderStatus> {
  try {
    const { runscVersion, cgroups } = await findGvisorHost(options);
    return { available: true, detail: `runsc ${runscVersion}, systrap, cgroup version ${cgroups.version}` };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { available: false, reason: message, hint: hint ?? "run `sandpiper doctor`" };
  }
}
