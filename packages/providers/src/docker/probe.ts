import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { Engine, type EngineInfo } from "./engine/engine.ts";
import { findEndpoint } from "./engine/find-endpoint.ts";

/** Whether an engine answers, which, and if not, what to do about it. */
export async function probeDocker({ engineUrl }: { readonly engineUrl?: string | undefined }): Promise<ProviderStatus> {
  try {
    using engine = await Engine.connect(await findEndpoint(engineUrl));
    return { available: true, detail: describeEngine(engine.info) };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { available: false, reason: message, hint: hint ?? "run `docker version`, which says more" };
  }
}

function describeEngine(info: EngineInfo): string {
  const runtime = info.runtimes.includes("runsc") ? "runsc" : info.defaultRuntime;
  return [
    `${info.isPodman ? "Podman" : "Docker"} ${info.serverVersion}`,
    `API ${info.apiVersion}`,
    runtime,
    `cgroup v${info.cgroupVersion.replace(/^v/, "")}`,
    `live restore ${info.isLiveRestore ? "on" : "off"}`,
  ].join(", ");
}
