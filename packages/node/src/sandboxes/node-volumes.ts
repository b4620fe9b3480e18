import { type Clock, type KeptVolumes, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId, type VolumeResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { KeptVolumesRecord, SqliteKeptVolumes } from "../records/sqlite-kept-volumes.ts";
import type { Providers } from "./providers.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

export interface NodeVolumesOptions {
  readonly records: SqliteKeptVolumes;
  readonly registry: Pick<SandboxRegistry, "record">;
  readonly providers: Providers;
  readonly clock: Clock;
}

/** The volumes that destroyed sandboxes left on this node. Other tenants' volumes do not exist for a caller. */
export class NodeVolumes {
  readonly #options: NodeVolumesOptions;

  constructor(options: NodeVolumesOptions) {
    this.#options = options;
  }

  /** Throws unless the sandbox has volumes that can be kept. */
  requireKeepable({ id, provider, state }: SandboxRecord): void {
    if (this.#engineOf(provider) === undefined) {
      throw new SandboxError("provider_lacks_capability", {
        message: `the volumes of sandbox ${id} cannot be kept: provider ${provider} keeps no volumes`,
        hint: "destroy it without volumes=keep, or save its files first",
        details: { id, provider, capability: "volumes" },
      });
    }
    if (state === "ready" || state === "failed" || this.isDecided(id)) return;
    throw new SandboxError("not_ready", {
      message: `the volumes of sandbox ${id} cannot be kept: it is ${state}, and only a ready or failed sandbox has volumes`,
      hint: state === "paused" || state === "stopped" ? "resume it first" : "wait until it is ready",
      details: { id, state },
    });
  }

  /** Records the decision before the sandbox is removed: a node that dies meanwhile must not lose the volumes. */
  decide({ id, tenant, provider }: SandboxRecord, { keeps }: { readonly keeps: boolean }): void {
    const { records, clock } = this.#options;
    if (keeps) records.add({ sandboxId: id, tenant, provider, keptAt: clock.now() });
    else records.remove(id);
  }

  /** Whether the volumes of a sandbox are to be kept, which is or was being destroyed. */
  isDecided(id: SandboxId): boolean {
    return this.#options.records.get(id) !== undefined;
  }

  /** Throws if a sandbox would mount a volume that is not one of its tenant's. */
  requireOwn(tenant: string, { provider, container }: Pick<SandboxRecord, "provider" | "container">): void {
    for (const { name } of container?.volumes ?? []) {
      const found = this.#find(sandboxOf(name));
      if (found?.tenant !== tenant || found.provider !== provider) throw noSuchVolume(name);
    }
  }

  async list({ tenant }: Principal): Promise<readonly VolumeResource[]> {
    const { registry, providers } = this.#options;
    const all = [...providers.byName.values()].map(async ({ name: provider, containers }) => {
      const volumes = (await containers?.kept?.list()) ?? [];
      return volumes.flatMap(({ name, sandbox, path, sizeBytes, usedBy }) => {
        const found = this.#find(sandbox);
        if (found?.tenant !== tenant || found.provider !== provider) return [];
        // Prepared instances have no record.
        const users = usedBy.filter((id) => registry.record(id) !== undefined);
        return [{ name, provider, sandbox, path, sizeBytes, keptAt: found.keptAt.toISOString(), usedBy: users }];
      });
    });
    return (await Promise.all(all)).flat();
  }

  async remove({ tenant }: Principal, name: string): Promise<void> {
    const found = this.#find(sandboxOf(name));
    const engine = found && this.#engineOf(found.provider);
    if (found?.tenant !== tenant || engine === undefined) throw noSuchVolume(name);
    await engine.remove(name);
    const others = (await engine.list()).some(({ sandbox }) => sandbox === found.sandboxId);
    if (!others) this.#options.records.remove(found.sandboxId);
  }

  #find(id: SandboxId | undefined): KeptVolumesRecord | undefined {
    const { records, registry } = this.#options;
    if (id === undefined) return undefined;
    // A node may have died before it destroyed the sandbox.
    const { state = "destroyed" } = registry.record(id) ?? {};
    return state === "destroyed" ? records.get(id) : undefined;
  }

  #engineOf(provider: string): KeptVolumes | undefined {
    return this.#options.providers.byName.get(provider)?.containers?.kept;
  }
}

/** The sandbox whose id ends the name of its volume. */
function sandboxOf(name: string): SandboxId | undefined {
  const id = name.slice(-36);
  return isSandboxId(id) ? id : undefined;
}

export function noSuchVolume(name: string): SandboxError {
  const volume = name.slice(0, 64);
  return new SandboxError("no_such_volume", {
    message: `kept volume ${JSON.stringify(volume)} not found`,
    details: { volume },
  });
}
