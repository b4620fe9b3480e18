import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceSpec } from "../provider.ts";
import { parseSandboxConfig, type SandboxConfig, type SandboxConfigOptions } from "./sandbox-config.ts";

/** Also carries options that shape only the sandbox, so that an adopted sandbox has the same config again. */
const CONFIG_LABEL = "sandpiper.config";

export function instanceSpec(id: SandboxId, config: SandboxConfig): InstanceSpec {
  const { language, chroot, timeoutMs, user, cwd, name, labels, ...shape } = config;
  const rest = JSON.stringify({ language, chroot, timeoutMs, user, cwd, name });
  return Object.freeze({ id, ...shape, labels: Object.freeze({ ...labels, [CONFIG_LABEL]: rest }) });
}

export function configFromSpec(spec: InstanceSpec): SandboxConfig {
  const { id: _, labels: allLabels, ...shape } = spec;
  const { [CONFIG_LABEL]: rest, ...labels } = allLabels;
  return parseSandboxConfig({ ...(JSON.parse(rest ?? "{}") as SandboxConfigOptions), ...shape, labels });
}
