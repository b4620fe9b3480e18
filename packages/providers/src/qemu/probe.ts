import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findDefaultRoot } from "../guest/image-default.ts";
import { canProvision } from "../guest/provision.ts";
import { findProgram } from "../host/find-program.ts";
import { unavailable } from "../host/probe-host.ts";
import { findQemuHost, findQemuState, isProvidable } from "./host.ts";

const DOWNLOADED_LATER =
  "not downloaded yet: the first sandbox downloads QEMU, a kernel and Debian packages (about 110 MB), which takes a minute";
const BUILT_LATER = "the default image is not built yet: the first sandbox that uses it takes a minute";

export async function probeQemu(stateDirectory: string): Promise<ProviderStatus> {
  try {
    const host = await findQemuHost(findQemuState(stateDirectory));
    const { qemu, accelerator, cgroups, kernelVersion, networkProblem } = host;
    const how = accelerator === "kvm" ? "KVM" : "TCG (translated code, without KVM)";
    const detail = `QEMU ${qemu.version}, ${how}, kernel ${kernelVersion}, cgroup version ${cgroups.version}${networkProblem}`;
    if ((await findDefaultRoot()) !== undefined) return { available: true, detail };
    return { available: true, detail: `${detail}; ${BUILT_LATER}`, isFirstUse: true };
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    // The only thing missing is what set-up can install.
    const isBuildable = error.reason !== "agent_missing" || findProgram("cargo") !== undefined;
    if (isProvidable(error) && isBuildable && canProvision())
      return { available: true, detail: DOWNLOADED_LATER, isFirstUse: true };
    return unavailable(error);
  }
}
