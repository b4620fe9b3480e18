import type { ProviderStatus } from "@sandpiper/core";
import { unavailable } from "../host/probe-host.ts";
import { Engine, type EngineInfo } from "./engine/engine.ts";
import { findEndpoint } from "./engine/find-endpoint.ts";

/** Reports the engine that answers, or why none does and what to do. */
export async function probeDocker({ engineUrl }: { readonly engineUrl?: string | undefined }): Promise<ProviderStatus> {
  try {
    using engine = await Engine.connect(await findEndpoint(engineUrl));
    return { available: true, detail: describeEngine(engine.info) };
  } catch (thrown) {
    return unavailable(thrown, "check the output of `docker version`");
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
