import { isSandboxId, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import { isAdmin, mayAccess, requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { ListedSandbox, SandboxRecord } from "../records/sandbox-record.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { beingDestroyed, ended, notReady } from "./sandbox-errors.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";
import { sandboxResource } from "./sandbox-resource.ts";

export interface SandboxAccessOptions {
  readonly registry: SandboxRegistry;
  readonly tokenOf: (id: SandboxId) => string;
  /** This node's id in its cluster; null on a standalone node. */
  readonly nodeId: string | null;
}

/** Decides which sandboxes a caller can see, and which of their fields. Other tenants' sandboxes do not exist for the caller. */
export class SandboxAccess {
  readonly #options: SandboxAccessOptions;

  constructor(options: SandboxAccessOptions) {
    this.#options = options;
  }

  /** Throws `not_found`, also for another tenant's sandbox. */
  find(principal: Principal, id: string, { readOnly }: { readonly readOnly: boolean }): SandboxRecord {
    // The query names the tenant, so that its duration does not reveal other tenants' sandboxes.
    const tenant = isAdmin(principal) ? undefined : principal.tenant;
    const record = isSandboxId(id) ? this.#options.registry.record(id, { tenant }) : undefined;
    if (record === undefined) throw noSuchSandbox(id);
    requireAccess(principal, "sandbox", { readOnly, sandbox: record });
    return record;
  }

  /** Finds a running sandbox without a database query, because every client message needs it. */
  running(principal: Principal, id: string, { readOnly }: { readonly readOnly: boolean }): LiveSandbox | undefined {
    const { registry } = this.#options;
    const live = registry.running(id as SandboxId);
    if (live === undefined || !(isAdmin(principal) || live.record.tenant === principal.tenant)) return undefined;
    if (registry.isBeingDestroyed(live.id)) return undefined;
    requireAccess(principal, "sandbox", { readOnly, sandbox: live.record });
    return live;
  }

  /** Like `running`, but throws `not_found`, or why the sandbox cannot be used. */
  open(principal: Principal, id: string, options: { readonly readOnly: boolean }): LiveSandbox {
    const live = this.running(principal, id, options);
    if (live !== undefined) return live;
    const record = this.find(principal, id, options);
    if (this.#options.registry.isBeingDestroyed(record.id)) throw beingDestroyed(record);
    throw record.endedAt === null ? notReady(record) : ended(record);
  }

  /** `node` is the sandbox's owner, by default this node. Only callers that may use the sandbox see its token. */
  resource(principal: Principal, record: ListedSandbox, node = this.#options.nodeId): SandboxResource {
    const { tokenOf, registry } = this.#options;
    const addresses = registry.running(record.id)?.addresses ?? {};
    const mayUse = mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
    return sandboxResource(record, { token: mayUse ? tokenOf(record.id) : null, node, addresses });
  }
}
