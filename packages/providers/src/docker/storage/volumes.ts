import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Engine } from "../engine/engine.ts";
import { cacheLabels, keptLabels, type Labels, label, projectOf, sandboxLabels } from "../engine/labels.ts";
import { cacheVolumeName, createCache } from "./caches.ts";

/** The mount point of every sandbox's data volume. */
const DATA_PATH = "/.data";
/** The mount point of the workspace, if any. */
export const WORKSPACE_PATH = "/workspace";

/** A named volume of a sandbox, and its mount point. */
export interface SandboxVolume {
  readonly name: string;
  readonly target: string;
  readonly labels: Labels;
  /** It outlives the sandbox and is not part of its checkpoints: a cache, or a kept volume of another sandbox. */
  readonly isShared: boolean;
}

const DATA_PREFIX = "sandpiper-data-";
const WORKSPACE_PREFIX = "sandpiper-workspace-";

export function dataVolumeName(id: SandboxId): string {
  return `${DATA_PREFIX}${id}`;
}

export function workspaceVolumeName(id: SandboxId): string {
  return `${WORKSPACE_PREFIX}${id}`;
}

/** Where a sandbox mounts its own volume of this name. */
export function pathOfVolume(name: string): string {
  return name.startsWith(WORKSPACE_PREFIX) ? WORKSPACE_PATH : DATA_PATH;
}

/** All volumes of a sandbox except the agent's. */
export function volumesOf(spec: InstanceSpec, home: string): readonly SandboxVolume[] {
  const labels = sandboxLabels(spec, home);
  const { caches = [], volumes = [] } = spec.container ?? {};
  const kept = volumes.map(({ name, path = pathOfVolume(name) }) => {
    const sandbox = name.replace(/^sandpiper-[a-z]+-/, "");
    return { name, target: path, labels: keptLabels(sandbox, home), isShared: true };
  });
  const own = (name: string, target: string) => ({ name, target, labels, isShared: false });
  return [
    // A kept volume takes the place of a new one.
    ...(kept.some(({ target }) => target === DATA_PATH) ? [] : [own(dataVolumeName(spec.id), DATA_PATH)]),
    ...(isWorkspaceVolume(spec) ? [own(workspaceVolumeName(spec.id), WORKSPACE_PATH)] : []),
    ...caches.map(({ name, path }) => {
      const cache = { project: projectOf(spec), name };
      return { name: cacheVolumeName(cache), target: path, labels: cacheLabels(cache, home), isShared: true };
    }),
    ...kept,
  ];
}

/** Whether the workspace is a volume rather than a directory of the engine's machine. */
export function isWorkspaceVolume({ container: { workspace, isWorkspaceCopied } = {} }: InstanceSpec): boolean {
  return workspace !== undefined && ("git" in workspace || isWorkspaceCopied === true);
}

/** Arguments that make the agent open new volumes, which belong to root, to all users of the container. */
export function openDirArguments(spec: InstanceSpec, home: string): readonly string[] {
  return volumesOf(spec, home).flatMap(({ target }) => ["--open-dir", target]);
}

/**
 * Creates the missing volumes, and returns the names of the sandbox's own new ones. If the creation of the sandbox fails,
 * `removeNamed` removes these and keeps the volumes of an earlier instance.
 */
export async function createVolumes(
  engine: Engine,
  spec: InstanceSpec,
  { home, signal }: { readonly home: string; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const project = projectOf(spec);
  const created: string[] = [];
  try {
    for (const { name } of spec.container?.caches ?? []) await createCache(engine, { project, name }, home);
    for (const { name, labels, isShared } of volumesOf(spec, home)) {
      // Aborts only between calls: an aborted call could still take effect after the clean-up.
      signal.throwIfAborted();
      if (isShared || (await exists(engine, spec, name, home))) continue;
      created.push(name);
      await engine.call(`create volume ${name}`, (docker) =>
        docker.createVolume({ Name: name, Labels: { ...labels } }),
      );
    }
  } catch (error) {
    // The first error is the one to report.
    await removeNamed(engine, created).catch(() => undefined);
    throw error;
  }
  return created;
}

/** Removes a sandbox's own volumes: removing a container removes only anonymous ones. */
export async function removeVolumes(engine: Engine, id: SandboxId, home: string): Promise<void> {
  for (const name of [dataVolumeName(id), workspaceVolumeName(id)]) {
    // After a handoff to another home on the same engine, volumes with the same names belong to that home.
    if ((await findLabels(engine, name))?.[label.home] === home) await removeNamed(engine, [name]);
  }
}

/** Removes volumes; ignores missing ones. */
export async function removeNamed(engine: Engine, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await engine.find(`remove volume ${name}`, (docker) => docker.getVolume(name).remove());
  }
}

async function exists(engine: Engine, { id }: InstanceSpec, name: string, home: string): Promise<boolean> {
  const labels = await findLabels(engine, name);
  if (labels === undefined) return false;
  if (labels[label.sandbox] === id && labels[label.home] === home) return true;
  throw new SandboxError("volume_of_another_home", {
    message: `cannot use volume ${name} for sandbox ${id}: it belongs to another home of Sandpiper`,
    hint: "give each node that takes part in handoffs its own engine, or remove the volume if it is unused",
    details: { volume: name },
  });
}

async function findLabels(engine: Engine, name: string): Promise<Labels | undefined> {
  const volume = await engine.find(`find volume ${name}`, (docker) => docker.getVolume(name).inspect());
  return volume && (volume.Labels ?? {});
}
