import type { SandboxId } from "@sandpiper/protocol";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";

/** The sizes of all volumes. The query keeps engines that support it from measuring images and containers, too. */
export async function findSizes(engine: Engine): Promise<ReadonlyMap<string, number>> {
  const query = { type: "volume" };
  const request = { path: "/system/df?", method: "GET", statusCodes: { 200: true }, options: query };
  const usage = (await engine.dial("get the sizes of volumes", request)) as {
    readonly Volumes?: readonly VolumeUsage[] | null;
  };
  // An unknown size is -1.
  return new Map((usage.Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]));
}

interface VolumeUsage {
  readonly Name: string;
  readonly UsageData?: { readonly Size: number } | null;
}

/** The sandboxes that mount each volume, running or not, by the volume's name. */
export async function findUsers(engine: Engine, home: string): Promise<ReadonlyMap<string, readonly SandboxId[]>> {
  const filters = { label: [`${label.home}=${home}`] };
  const containers = await engine.call("list the users of volumes", (docker) =>
    docker.listContainers({ all: true, filters }),
  );
  const uses = containers.flatMap(({ Labels, Mounts }) => {
    const id = Labels[label.sandbox] as SandboxId | undefined;
    return id === undefined ? [] : (Mounts ?? []).map((mount) => ({ id, volume: mount.Name ?? "" }));
  });
  const byVolume = Map.groupBy(uses, ({ volume }) => volume);
  return new Map([...byVolume].map(([volume, users]) => [volume, users.map(({ id }) => id)]));
}
