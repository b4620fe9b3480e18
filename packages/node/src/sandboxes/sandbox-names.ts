import type { SandboxId } from "@sandpiper/protocol";
import { nameInUse, type SharedNames } from "../cluster/shared-names.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

type Named = Pick<SandboxRecord, "id" | "tenant" | "name">;

export interface SandboxNamesOptions {
  readonly registry: SandboxRegistry;
  /** Names across the nodes of a cluster; undefined on a standalone node. */
  readonly shared: Pick<SharedNames, "take" | "release"> | undefined;
}

/** A name identifies at most one sandbox of a tenant that has not ended. */
export class SandboxNames {
  readonly #options: SandboxNamesOptions;

  constructor(options: SandboxNamesOptions) {
    this.#options = options;
  }

  /** Throws `already_exists` / `name_in_use` if another sandbox on this node has the name. */
  requireFree({ tenant, name, id }: Pick<Named, "tenant" | "name"> & { readonly id?: SandboxId }): void {
    if (name === null) return;
    const holder = this.#options.registry.named(tenant, name);
    if (holder !== undefined && holder !== id) throw nameInUse(name, holder);
  }

  /** Takes the name across the cluster, before the sandbox gets it. Throws `name_in_use`. */
  async take({ tenant, name, id }: Named): Promise<void> {
    this.requireFree({ tenant, name, id });
    if (name !== null) await this.#options.shared?.take({ tenant, name, id });
  }

  /** Frees the name for other sandboxes. If that fails, the name is free once the sandbox is gone from the store. */
  async release({ tenant, name, id }: Named): Promise<void> {
    if (name !== null) await this.#options.shared?.release({ tenant, name, id }).catch(() => {});
  }
}
