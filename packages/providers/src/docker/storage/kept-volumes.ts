import { type InstanceSpec, type KeptVolume, type KeptVolumes, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import type { InstanceStore } from "../../host/instance-store.ts";
import type { Engine } from "../engine/engine.ts";
import { type Labels, label } from "../engine/labels.ts";
import { findSizes, findUsers } from "./volume-usage.ts";
import { pathOfVolume } from "./volumes.ts";

/** The parts of a host that own its volumes. */
export interface VolumeOwner {
  readonly engine: Engine;
  readonly home: string;
  readonly store: InstanceStore;
}

/** The volumes of this home whose sandbox has no instance any more. */
export class DockerKeptVolumes implements KeptVolumes {
  readonly #findOwner: () => Promise<VolumeOwner>;

  constructor(findOwner: () => Promise<VolumeOwner>) {
    this.#findOwner = findOwner;
  }

  async list(): Promise<readonly KeptVolume[]> {
    const owner = await this.#findOwner();
    const { engine, home } = owner;
    const filters = { label: [label.sandbox] };
    const { Volumes } = await engine.call("list volumes", (docker) => docker.listVolumes({ filters }));
    const [users, sizes] = await Promise.all([findUsers(engine, home), findSizes(engine)]);
    const found = (Volumes ?? []).map(async ({ Name, Labels }): Promise<readonly KeptVolume[]> => {
      const sandbox = await sandboxOf(owner, Labels);
      if (sandbox === undefined) return [];
      return [
        {
          name: Name,
          sandbox,
          path: pathOfVolume(Name),
          sizeBytes: sizes.get(Name) ?? 0,
          usedBy: users.get(Name) ?? [],
        },
      ];
    });
    return (await Promise.all(found)).flat().toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async remove(name: string): Promise<void> {
    const owner = await this.#findOwner();
    const { engine, home } = owner;
    await requireKept(owner, name);
    try {
      await engine.call(`remove volume ${name}`, (docker) => docker.getVolume(name).remove());
    } catch (cause) {
      const usedBy = (await findUsers(engine, home)).get(name);
      if (usedBy === undefined) throw cause;
      const message = `volume ${name} cannot be removed: sandboxes use it: ${usedBy.join(", ")}`;
      throw new SandboxError("volume_in_use", { message, details: { usedBy }, cause });
    }
  }
}

/** Rejects a spec that mounts a volume which does not exist or belongs to an existing sandbox. */
export async function requireKeptVolumes(owner: VolumeOwner, { container }: InstanceSpec): Promise<void> {
  for (const { name } of container?.volumes ?? []) await requireKept(owner, name);
}

async function requireKept(owner: VolumeOwner, name: string): Promise<void> {
  const found = await owner.engine.find(`find volume ${name}`, (docker) => docker.getVolume(name).inspect());
  if (found !== undefined && (await sandboxOf(owner, found.Labels)) !== undefined) return;
  throw new SandboxError("no_such_volume", { message: `kept volume ${name} not found`, details: { volume: name } });
}

/** The destroyed sandbox of a volume; undefined if it exists, or if the volume is of another home or kind. */
async function sandboxOf({ home, store }: VolumeOwner, labels: Labels | null): Promise<SandboxId | undefined> {
  const { [label.sandbox]: id = "", [label.home]: owner } = labels ?? {};
  if (owner !== home || !isSandboxId(id)) return undefined;
  return (await store.read(id)) === undefined ? id : undefined;
}
