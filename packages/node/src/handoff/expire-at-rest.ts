import type { Clock, Leases } from "@sandpiper/core";
import type { Principal } from "../auth/principal.ts";
import type { Locator } from "./locator.ts";
import type { SavedRecords } from "./saved-records.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import type { NodeService } from "../sandboxes/sandbox-service.ts";

export interface ExpireRestingOptions {
  readonly records: SandboxRecords;
  readonly service: Pick<NodeService, "destroy">;
  readonly clock: Clock;
  /** Undefined: there are no sandboxes but the node's own. */
  readonly cluster?:
    | {
        readonly saved: SavedRecords;
        readonly leases: Pick<Leases, "read">;
        readonly locator: Locator;
      }
    | undefined;
}

/** The node itself: nobody has to ask for the end of what has ended. */
const SELF: Principal = {
  kind: "key",
  keyId: "node",
  tenant: "node",
  scopes: ["admin"],
  quota: { maxSandboxes: null, maxMemoryMib: null, maxVcpuCount: null },
};

/** Sandboxes that do not run have no clock of their own: those whose time is over end here. */
export async function expireResting({ records, service, clock, cluster }: ExpireRestingOptions): Promise<void> {
  const now = clock.now();
  const isOver = ({ expiresAt, onExpiry }: SandboxRecord) =>
    onExpiry === "destroy" && expiresAt !== null && expiresAt <= now;
  const isResting = ({ state }: SandboxRecord) => state === "paused" || state === "stopped";
  if (cluster !== undefined) {
    for (const saved of await cluster.saved.list()) {
      if (!isOver(saved) || records.get(saved.id) !== undefined) continue;
      const lock = await cluster.leases.read(saved.id);
      // Whoever has it sees to it.
      if (lock !== undefined && !lock.isLive) await cluster.locator.locate(SELF, saved.id, "end");
    }
  }
  for (const record of records.live()) {
    if (isOver(record) && isResting(record)) await service.destroy(record, { expired: "ttl" });
  }
}
