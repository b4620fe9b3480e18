import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { type PathPolicy, requireAllowedPath } from "./binds.ts";
import { type SandboxVolume, volumesOf, WORKSPACE_PATH } from "./volumes.ts";

/** Where the agent is; nobody inside changes it. */
export const AGENT_PATH = "/.sandpiper";

/** The kernel's and the agent's: nothing is mounted at them, below them or over them. */
const RESERVED = [AGENT_PATH, "/proc", "/sys", "/dev", "/var/lib/sandpiper"];

/** Where a container whose image cannot be written has memory instead. */
const IN_MEMORY = ["/tmp", "/run"];

/** A mount in the engine's terms. */
export interface EngineMount {
  readonly Type: "volume" | "bind";
  readonly Source: string;
  readonly Target: string;
  readonly ReadOnly: boolean;
  readonly VolumeOptions?: {
    readonly NoCopy: boolean;
    Labels: Record<string, string>;
    DriverConfig: { Name: string; Options: Record<string, string> };
  };
  readonly BindOptions?: { readonly Propagation: "rprivate"; readonly NonRecursive: boolean };
}

export interface MountsOptions {
  /** The volume that holds the agent. */
  readonly agentVolume: string;
  readonly home: string;
  readonly paths: PathPolicy;
}

/** Everything that a sandbox's container has mounted; what must not be, or not there, is refused. */
export async function mountsOf(
  spec: InstanceSpec,
  { agentVolume, home, paths }: MountsOptions,
): Promise<readonly EngineMount[]> {
  const { binds = [], workspace } = spec.container ?? {};
  const volumes = volumesOf(spec, home);
  const lent = [
    ...(workspace !== undefined && "path" in workspace
      ? [{ source: workspace.path, target: WORKSPACE_PATH, isReadOnly: false }]
      : []),
    ...binds,
  ];
  requireFreeTargets(spec, [...volumes, ...lent]);
  const bound = lent.map(async ({ source, target, isReadOnly }) =>
    bindMount(await requireAllowedPath(source, paths), target, isReadOnly),
  );
  return [agentMount(agentVolume), ...volumes.map(volumeMount), ...(await Promise.all(bound))];
}

function agentMount(volume: string): EngineMount {
  // Copied from an image, its own program would become the agent of everybody.
  const VolumeOptions = { NoCopy: true, Labels: {}, DriverConfig: { Name: "local", Options: {} } };
  return { Type: "volume", Source: volume, Target: AGENT_PATH, ReadOnly: true, VolumeOptions };
}

function volumeMount({ name, target, labels, isShared }: SandboxVolume): EngineMount {
  return {
    Type: "volume",
    Source: name,
    Target: target,
    ReadOnly: false,
    VolumeOptions: {
      // What an image has at a cache's path begins it; a workspace begins with its repository, and data with nothing.
      NoCopy: !isShared,
      // A cache that is cleared at this moment comes back as what it was.
      Labels: { ...labels },
      DriverConfig: { Name: "local", Options: {} },
    },
  };
}

function bindMount(source: string, target: string, isReadOnly: boolean): EngineMount {
  // Engines before Docker 25 leave what is mounted further down writable, so it stays out of a read-only one.
  const BindOptions = { Propagation: "rprivate" as const, NonRecursive: isReadOnly };
  return { Type: "bind", Source: source, Target: target, ReadOnly: isReadOnly, BindOptions };
}

function requireFreeTargets({ id, container }: InstanceSpec, mounts: readonly { readonly target: string }[]): void {
  const targets = mounts.map(({ target }) => target);
  for (const [index, target] of targets.entries()) {
    const reserved = RESERVED.find((path) => isWithin(target, path) || isWithin(path, target));
    if (reserved !== undefined) throw taken(id, target, `${reserved} is reserved`);
    if (container?.isRootReadOnly === true && IN_MEMORY.includes(target)) throw taken(id, target, "memory is there");
    if (targets.indexOf(target) !== index) throw taken(id, target, "something else is mounted there already");
    // Git clones into a directory only while that is empty.
    const isInClone = target !== WORKSPACE_PATH && isWithin(target, WORKSPACE_PATH);
    if (isInClone && container?.workspace !== undefined && "git" in container.workspace) {
      throw taken(id, target, `a repository is cloned into ${WORKSPACE_PATH}`);
    }
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}

function taken(id: string, target: string, why: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "mount_target_taken",
    message: `sandbox ${id} cannot have anything mounted at ${target}: ${why}`,
    hint: "choose another path",
    details: { target },
  });
}
