import type { CheckpointRequirements } from "@sandpiper/core";
import type { PoolKeyBody } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { placeholderVariables } from "../secrets/trust-variables.ts";
import { tenantProject } from "./tenant-project.ts";

/** Everything that shapes an instance. Warm pools hold no instances with container options. */
export interface InstanceKey extends PoolKeyBody {
  readonly container?: SandboxRecord["container"];
  /** The environment of its service; commands get theirs with each call. */
  readonly env?: SandboxRecord["env"] | undefined;
  /** The requirements of the checkpoint that a prepared instance is for. */
  readonly saved?: CheckpointRequirements | undefined;
}

/** The key of the warm pool that could serve this sandbox, or of a prepared instance for a checkpoint with these requirements. */
export function instanceKey(
  record: Pick<SandboxRecord, Exclude<keyof InstanceKey, "saved"> | "tenant" | "secrets">,
  saved?: CheckpointRequirements,
): InstanceKey {
  const { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses } = record;
  const container = record.container && {
    ...record.container,
    project: tenantProject(record.tenant, record.container.project),
  };
  const env = container?.service === undefined ? undefined : { ...placeholderVariables(record.secrets), ...record.env };
  return { provider, image, container, env, memoryMib, vcpuCount, diskMib, maxProcesses, saved };
}

export function instanceKeyText(key: InstanceKey): string {
  const { provider, image, container = null, env = null, memoryMib, vcpuCount, diskMib, maxProcesses } = key;
  const { saved = null } = key;
  return JSON.stringify([provider, image, container, env, memoryMib, vcpuCount, diskMib, maxProcesses, saved]);
}
