import { type CacheVolume, SandboxError } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";
import { cacheLabels, label } from "../engine/labels.ts";
import { findSizes, findUsers } from "./volume-usage.ts";

export type CacheName = Pick<CacheVolume, "project" | "name">;

/** Doubles dashes in the project, so that cache c of project a-b differs from cache b-c of project a. */
export function cacheVolumeName({ project, name }: CacheName): string {
  return `sandpiper-cache-${project.replaceAll("-", "--")}-${name}`;
}

/** Creates a cache unless it exists. */
export async function createCache(engine: Engine, cache: CacheName, home: string): Promise<void> {
  await engine.call(`create ${shown(cache)}`, (docker) =>
    docker.createVolume({ Name: cacheVolumeName(cache), Labels: { ...cacheLabels(cache, home) } }),
  );
  // The engine returns an existing volume, whichever home owns it.
  await requireOwn(engine, cache, home);
}

export async function listCaches(engine: Engine, home: string): Promise<readonly CacheVolume[]> {
  const filters = { label: [label.cache] };
  const { Volumes } = await engine.call("list caches", (docker) => docker.listVolumes({ filters }));
  const [users, sizes] = await Promise.all([findUsers(engine, home), findSizes(engine)]);
  const caches = (Volumes ?? []).flatMap(({ Name, Labels }) => {
    // Podman matches volumes with any of several labels, not all, so this compares them.
    const { [label.project]: project, [label.cache]: name, [label.home]: owner } = Labels ?? {};
    if (project === undefined || name === undefined || owner !== home) return [];
    return [{ project, name, sizeBytes: sizes.get(Name) ?? 0, usedBy: users.get(Name) ?? [] }];
  });
  return caches.toSorted((a, b) => compare(a.project, b.project) || compare(a.name, b.name));
}

/** Removes a cache with its content; the next sandbox starts with an empty one. */
export async function clearCache(engine: Engine, cache: CacheName, home: string): Promise<void> {
  await requireOwn(engine, cache, home);
  const name = cacheVolumeName(cache);
  try {
    await engine.call(`clear ${shown(cache)}`, (docker) => docker.getVolume(name).remove());
  } catch (cause) {
    const usedBy = (await findUsers(engine, home)).get(name);
    if (usedBy === undefined) throw cause;
    const message = `${shown(cache)} cannot be cleared: sandboxes use it: ${usedBy.join(", ")}`;
    throw new SandboxError("cache_in_use", { message, details: { usedBy }, cause });
  }
}

/** Rejects a cache that is missing or belongs to another home. */
async function requireOwn(engine: Engine, cache: CacheName, home: string): Promise<void> {
  const name = cacheVolumeName(cache);
  const volume = await engine.find(`find ${shown(cache)}`, (docker) => docker.getVolume(name).inspect());
  if (volume === undefined) {
    throw new SandboxError("no_such_cache", {
      message: `${shown(cache)} does not exist`,
      hint: "list the caches; the first sandbox that uses a cache creates it",
    });
  }
  const expected = Object.entries(cacheLabels(cache, home));
  if (expected.every(([key, value]) => volume.Labels?.[key] === value)) return;
  throw new SandboxError("cache_of_another_home", {
    message: `${shown(cache)} cannot be used: volume ${name} belongs to another home of Sandpiper`,
    hint: "use another project name, or remove the volume with `docker volume rm` if it is unused",
    details: { volume: name },
  });
}

function shown({ project, name }: CacheName): string {
  return `cache ${name} of project ${project}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
