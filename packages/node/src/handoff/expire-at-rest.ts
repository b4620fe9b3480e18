import type { Clock, Leases } from "@sandpiper/core";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { SandboxService } from "../sandboxes/sandbox-service.ts";
import type { Locator } from "./locator.ts";
import type { SavedRecords } from "./saved-records.ts";

export interface ExpireAtRestOptions {
  readonly registry: SandboxRegistry;
  readonly sandboxes: Pick<SandboxService, "destroy">;
  readonly locator: Locator;
  readonly clock: Clock;
  /** Undefined on a standalone node. */
  readonly cluster?: { readonly saved: SavedRecords; readonly leases: Pick<Leases, "read"> } | undefined;
}

/** The principal of the node's own actions. */
const SELF: Principal = {
  kind: "key",
  keyId: "node",
  tenant: "node",
  scopes: ["admin"],
};

/** Destroys expired sandboxes that do not run and therefore have no timer. */
export async function expireAtRest(options: ExpireAtRestOptions): Promise<void> {
  const { registry, sandboxes, locator, clock, cluster } = options;
  const now = clock.now();
  const isExpired = ({ expiresAt, onExpiry }: SandboxRecord) =>
    onExpiry === "destroy" && expiresAt !== null && expiresAt <= now;
  for (const saved of (await cluster?.saved.list()) ?? []) {
    if (!isExpired(saved) || registry.record(saved.id) !== undefined) continue;
    const lock = await cluster?.leases.read(saved.id);
    // A live owner destroys its sandboxes itself.
    if (lock === undefined || lock.isLive) continue;
    await locator.claim(SELF, saved.id, { purpose: "end", readOnly: false });
  }
  for (const record of registry.current()) {
    const isAtRest = record.state === "paused" || record.state === "stopped";
    if (isExpired(record) && isAtRest) await sandboxes.destroy(record, { expired: "ttl" });
  }
}
