import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Engine } from "../engine/engine.ts";
import { cacheLabels, type Labels, label, projectOf, sandboxLabels } from "../engine/labels.ts";
import { cacheVolumeName, makeCache } from "./caches.ts";

/** Where the data volume of every sandbox is. */
const DATA_PATH = "/.data";
/** Where the workspace is, if there is one. */
export const WORKSPACE_PATH = "/workspace";

/** A named volume of a sandbox, and where it is mounted. */
export interface SandboxVolume {
  readonly name: string;
  readonly target: string;
  readonly labels: Labels;
  /** Others of the project have it too. */
  readonly isShared: boolean;
}

export function dataVolumeName(id: SandboxId): string {
  return `sandpiper-data-${id}`;
}

export function workspaceVolumeName(id: SandboxId): string {
  return `sandpiper-workspace-${id}`;
}

/** Every volume that a sandbox has, except that of the agent. */
export function volumesOf(spec: InstanceSpec, home: string): readonly SandboxVolume[] {
  const labels = sandboxLabels(spec, home);
  const { workspace, caches = [] } = spec.container ?? {};
  const own = (name: string, target: string) => ({ name, target, labels, isShared: false });
  return [
    own(dataVolumeName(spec.id), DATA_PATH),
    ...(workspace !== undefined && "git" in workspace ? [own(workspaceVolumeName(spec.id), WORKSPACE_PATH)] : []),
    ...caches.map(({ name, path }) => {
      const cache = { project: projectOf(spec), name };
      return { name: cacheVolumeName(cache), target: path, labels: cacheLabels(cache, home), isShared: true };
    }),
  ];
}

/** For the agent's command line: a fresh volume is root's alone until the agent opens it to everybody inside. */
export function openDirArguments(spec: InstanceSpec, home: string): readonly string[] {
  return volumesOf(spec, home).flatMap(({ target }) => ["--open-dir", target]);
}

/**
 * Makes what is not there yet. The answer names the sandbox's own volumes that are new: `removeNamed` takes them away
 * when the creation fails after all, while those that an earlier instance left are kept.
 */
export async function makeVolumes(
  engine: Engine,
  spec: InstanceSpec,
  { home, signal }: { readonly home: string; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const project = projectOf(spec);
  const made: string[] = [];
  try {
    for (const { name } of spec.container?.caches ?? []) await makeCache(engine, { project, name }, home);
    for (const { name, labels, isShared } of volumesOf(spec, home)) {
      // Between the calls: one that is aborted may still have its effect, after everything was cleared away.
      signal.throwIfAborted();
      if (isShared || (await isThere(engine, spec, name, home))) continue;
      made.push(name);
      await engine.call(`make volume ${name}`, (docker) => docker.createVolume({ Name: name, Labels: { ...labels } }));
    }
  } catch (error) {
    // An engine that failed may fail again; why it did first is what matters.
    await removeNamed(engine, made).catch(() => undefined);
    throw error;
  }
  return made;
}

/** Removes a sandbox's own volumes, by name: the engine's removal of a container takes only those without one. */
export async function removeVolumes(engine: Engine, id: SandboxId, home: string): Promise<void> {
  for (const name of [dataVolumeName(id), workspaceVolumeName(id)]) {
    // A sandbox that went to another home on the same engine has its volumes there under the same names.
    if ((await findLabels(engine, name))?.[label.home] === home) await removeNamed(engine, [name]);
  }
}

/** Removes volumes; one that is gone already is fine. */
export async function removeNamed(engine: Engine, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await engine
      .call(`remove volume ${name}`, (docker) => docker.getVolume(name).remove())
      .catch((error: unknown) => ignoreMissing(error));
  }
}

async function isThere(engine: Engine, { id }: InstanceSpec, name: string, home: string): Promise<boolean> {
  const labels = await findLabels(engine, name);
  if (labels === undefined) return false;
  if (labels[label.sandbox] === id && labels[label.home] === home) return true;
  throw new SandboxError("failed_precondition", {
    reason: "volume_of_another_home",
    message: `volume ${name} of sandbox ${id} cannot be used: it was not made by this home of Sandpiper`,
    hint: "nodes that hand sandboxes over need engines of their own; remove the volume if nobody needs it",
    details: { volume: name },
  });
}

async function findLabels(engine: Engine, name: string): Promise<Labels | undefined> {
  const volume = await engine
    .call(`find volume ${name}`, (docker) => docker.getVolume(name).inspect())
    .catch((error: unknown) => ignoreMissing(error));
  return volume && (volume.Labels ?? {});
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof SandboxError && error.code === "not_found")) throw error;
}
