import type { LockView } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Whereabout } from "../handoff/locator.ts";

/** Which node answers about a sandbox. */
export interface Whereabouts {
  /** It runs on this node; asked for every request. */
  isHere(id: SandboxId): boolean;
  /** Another node only while that lives and holds it; about everything else, also what is nowhere, this node answers. */
  find(id: SandboxId): Promise<Whereabout>;
}

export interface LeaseWhereaboutsOptions {
  readonly nodeId: string;
  readonly isHere: (id: SandboxId) => boolean;
  readonly leases: { read(id: SandboxId): Promise<LockView | undefined> };
}

/** By the locks in the store. */
export class LeaseWhereabouts implements Whereabouts {
  readonly #options: LeaseWhereaboutsOptions;

  constructor(options: LeaseWhereaboutsOptions) {
    this.#options = options;
  }

  isHere(id: SandboxId): boolean {
    return this.#options.isHere(id);
  }

  async find(id: SandboxId): Promise<Whereabout> {
    const { nodeId, leases } = this.#options;
    if (this.isHere(id)) return { kind: "here" };
    const lock = await leases.read(id);
    if (lock === undefined || !lock.isLive || lock.owner === null || lock.url === null) return { kind: "here" };
    return lock.owner === nodeId ? { kind: "here" } : { kind: "node", id: lock.owner, url: lock.url };
  }
}
