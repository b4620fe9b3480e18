import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findQemuHost, type QemuOptions } from "./host.ts";

export async function probeQemu(options: QemuOptions): Promise<ProviderStatus> {
  try {
    const { qemu, accelerator, cgroups, kernelVersion } = await findQemuHost(options);
    const how = accelerator === "kvm" ? "KVM" : "TCG (translated code, without KVM)";
    const detail = `QEMU ${qemu.version}, ${how}, kernel ${kernelVersion}, cgroup version ${cgroups.version}`;
    return { available: true, detail };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { available: false, reason: message, hint: hint ?? "run `sandpiper doctor`" };
  }
}
