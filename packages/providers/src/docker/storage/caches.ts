import { type CacheVolume, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Engine } from "../engine/engine.ts";
import { cacheLabels, label } from "../engine/labels.ts";

export type CacheName = Pick<CacheVolume, "project" | "name">;

/** A dash of the project is doubled: cache c of project a-b must not be cache b-c of project a. */
export function cacheVolumeName({ project, name }: CacheName): string {
  return `sandpiper-cache-${project.replaceAll("-", "--")}-${name}`;
}

/** Makes a cache unless it is there. */
export async function makeCache(engine: Engine, cache: CacheName, home: string): Promise<void> {
  await engine.call(`make ${words(cache)}`, (docker) =>
    docker.createVolume({ Name: cacheVolumeName(cache), Labels: { ...cacheLabels(cache, home) } }),
  );
  // The engine answers a second creation with the volume that is there, whosever it is.
  await requireOwn(engine, cache, home);
}

export async function listCaches(engine: Engine, home: string): Promise<readonly CacheVolume[]> {
  const filters = { label: [label.cache] };
  const { Volumes } = await engine.call("list caches", (docker) => docker.listVolumes({ filters }));
  const [users, sizes] = await Promise.all([findUsers(engine, home), findSizes(engine)]);
  const caches = (Volumes ?? []).flatMap(({ Name, Labels }) => {
    // Podman takes what has one of several labels for what has all of them, so they are compared here.
    const { [label.project]: project, [label.cache]: name, [label.home]: owner } = Labels ?? {};
    if (project === undefined || name === undefined || owner !== home) return [];
    return [{ project, name, sizeBytes: sizes.get(Name) ?? 0, usedBy: users.get(Name) ?? [] }];
  });
  return caches.toSorted((a, b) => compare(a.project, b.project) || compare(a.name, b.name));
}

/** Removes a cache with all that is in it; whoever asks for it next begins with an empty one. */
export async function clearCache(engine: Engine, cache: CacheName, home: string): Promise<void> {
  await requireOwn(engine, cache, home);
  const name = cacheVolumeName(cache);
  try {
    await engine.call(`clear ${words(cache)}`, (docker) => docker.getVolume(name).remove());
  } catch (error) {
    const users = (await findUsers(engine, home)).get(name);
    throw users === undefined ? error : inUse(cache, users, error);
  }
}

/** Of every volume. The sizes of all images and containers take long; an engine that can leaves them out. */
async function findSizes(engine: Engine): Promise<ReadonlyMap<string, number>> {
  const query = { type: "volume" };
  const request = { path: "/system/df?", method: "GET", statusCodes: { 200: true }, options: query };
  const usage = await engine.call("find the sizes of caches", async ({ modem }) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    modem.dial(request, (error, answer) => (error ? reject(error) : resolve(answer)));
    return (await promise) as { readonly Volumes?: readonly VolumeUsage[] | null };
  });
  // One that the engine does not know is -1.
  return new Map((usage.Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]));
}

interface VolumeUsage {
  readonly Name: string;
  readonly UsageData?: { readonly Size: number } | null;
}

/** The sandboxes that have volumes mounted, running or not, by the volume's name. */
async function findUsers(engine: Engine, home: string): Promise<ReadonlyMap<string, readonly SandboxId[]>> {
  const filters = { label: [`${label.home}=${home}`] };
  const containers = await engine.call("list who uses caches", (docker) =>
    docker.listContainers({ all: true, filters }),
  );
  const uses = containers.flatMap(({ Labels, Mounts }) => {
    const id = Labels[label.sandbox] as SandboxId | undefined;
    return id === undefined ? [] : (Mounts ?? []).map((mount) => ({ id, volume: mount.Name ?? "" }));
  });
  const byVolume = Map.groupBy(uses, ({ volume }) => volume);
  return new Map([...byVolume].map(([volume, users]) => [volume, users.map(({ id }) => id)]));
}

/** Another home's sandboxes are other people's. */
async function requireOwn(engine: Engine, cache: CacheName, home: string): Promise<void> {
  const name = cacheVolumeName(cache);
  const volume = await engine
    .call(`find ${words(cache)}`, (docker) => docker.getVolume(name).inspect())
    .catch((error: unknown) => {
      throw error instanceof SandboxError && error.code === "not_found" ? noSuchCache(cache, error) : error;
    });
  const expected = Object.entries(cacheLabels(cache, home));
  if (expected.every(([key, value]) => volume.Labels?.[key] === value)) return;
  throw new SandboxError("failed_precondition", {
    reason: "cache_of_another_home",
    message: `${words(cache)} cannot be used: volume ${name} of the engine was not made by this home of Sandpiper`,
    hint: "name another project, or remove that volume with `docker volume rm` if nobody needs it",
    details: { volume: name },
  });
}

function words({ project, name }: CacheName): string {
  return `cache ${name} of project ${project}`;
}

function noSuchCache(cache: CacheName, cause: unknown): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_cache",
    message: `there is no ${words(cache)}`,
    hint: "list the caches; one is made when the first sandbox asks for it",
    cause,
  });
}

function inUse(cache: CacheName, users: readonly SandboxId[], cause: unknown): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "cache_in_use",
    message: `${words(cache)} cannot be cleared: it is used by ${users.join(", ")}`,
    hint: "destroy these sandboxes first",
    details: { usedBy: users },
    cause,
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
