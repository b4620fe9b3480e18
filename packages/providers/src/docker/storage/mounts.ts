import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import { isWithin, type PathPolicy, requireAllowedPath } from "../../host/allowed-path.ts";
import { isWorkspaceVolume, type SandboxVolume, volumesOf, WORKSPACE_PATH } from "./volumes.ts";

/** The read-only mount point of the agent. */
export const AGENT_PATH = "/.sandpiper";

/** Paths of the kernel and the agent: no mount may be at, above or below them. */
const RESERVED = [AGENT_PATH, "/proc", "/sys", "/dev", "/var/lib/sandpiper"];

/** In memory in a container with a read-only root. */
const IN_MEMORY = ["/tmp", "/run"];

export interface MountsOptions {
  /** The name of the agent's volume. */
  readonly agentVolume: string;
  readonly home: string;
  readonly paths: PathPolicy;
}

/** The mounts of a sandbox's container; rejects paths that are not allowed or that conflict. */
export async function mountsOf(
  spec: InstanceSpec,
  { agentVolume, home, paths }: MountsOptions,
): Promise<readonly Docker.MountSettings[]> {
  const { binds = [], workspace } = spec.container ?? {};
  const volumes = volumesOf(spec, home);
  const bindings = [
    ...(workspace !== undefined && "path" in workspace && !isWorkspaceVolume(spec)
      ? [{ source: workspace.path, target: WORKSPACE_PATH, isReadOnly: false }]
      : []),
    ...binds,
  ];
  requireFreeTargets(spec, [...volumes, ...bindings]);
  const bound = bindings.map(async ({ source, target, isReadOnly }) =>
    bindMount(await requireAllowedPath(source, paths), target, isReadOnly),
  );
  return [agentMount(agentVolume, { isReadOnly: true }), ...volumes.map(volumeMount), ...(await Promise.all(bound))];
}

/** NoCopy: otherwise a file of the image could become the agent of all sandboxes. */
export function agentMount(volume: string, { isReadOnly }: { readonly isReadOnly: boolean }): Docker.MountSettings {
  const VolumeOptions = { NoCopy: true, Labels: {}, DriverConfig: { Name: "local", Options: {} } };
  return { Type: "volume", Source: volume, Target: AGENT_PATH, ReadOnly: isReadOnly, VolumeOptions };
}

function volumeMount({ name, target, labels, isShared }: SandboxVolume): Docker.MountSettings {
  return {
    Type: "volume",
    Source: name,
    Target: target,
    ReadOnly: false,
    VolumeOptions: {
      // Only a cache starts with the image's files at its path.
      NoCopy: !isShared,
      // If the cache is cleared now, the engine recreates it with its labels.
      Labels: { ...labels },
      DriverConfig: { Name: "local", Options: {} },
    },
  };
}

function bindMount(source: string, target: string, isReadOnly: boolean): Docker.MountSettings {
  // Before Docker 25, mounts below a read-only bind stay writable, so they are left out.
  const BindOptions = { Propagation: "rprivate" as const, NonRecursive: isReadOnly };
  return { Type: "bind", Source: source, Target: target, ReadOnly: isReadOnly, BindOptions };
}

function requireFreeTargets(spec: InstanceSpec, mounts: readonly { readonly target: string }[]): void {
  const { id, container } = spec;
  const targets = mounts.map(({ target }) => target);
  for (const [index, target] of targets.entries()) {
    const reserved = RESERVED.find((path) => isWithin(target, path) || isWithin(path, target));
    if (reserved !== undefined) throw taken(id, target, `${reserved} is reserved`);
    if (container?.isRootReadOnly === true && IN_MEMORY.includes(target))
      throw taken(id, target, "it is in memory, because the root is read-only");
    if (targets.indexOf(target) !== index) throw taken(id, target, "another mount has the same path");
    // Git clones only into an empty directory.
    const isInClone = target !== WORKSPACE_PATH && isWithin(target, WORKSPACE_PATH);
    if (isInClone && isWorkspaceVolume(spec)) {
      throw taken(id, target, `the workspace is copied into ${WORKSPACE_PATH}`);
    }
  }
}

function taken(id: string, target: string, why: string): SandboxError {
  return new SandboxError("mount_target_taken", {
    message: `cannot mount at ${target} in sandbox ${id}: ${why}`,
    details: { target },
  });
}
