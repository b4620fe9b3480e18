import { Counter, type Registry } from "prom-client";
import type { FlowWrite } from "../flows/flow-table.ts";

/** The first tenants that use the network have their own time series; all later ones share one. */
const MAX_TENANTS = 50;
/** Not a valid name of a tenant. */
const OTHERS = "_other";

/** Connections, queries and bytes of sandboxes, by tenant. */
export class FlowMetrics {
  readonly #flows: Counter<"tenant" | "kind" | "decision">;
  readonly #bytes: Counter<"tenant" | "direction">;
  readonly #tenants = new Set<string>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#flows = new Counter({
      registers,
      name: "sandpiper_network_flows_total",
      help: "Connections, DNS queries and refused datagrams of sandboxes. Tenants beyond 50 are summed up as _other.",
      labelNames: ["tenant", "kind", "decision"],
    });
    this.#bytes = new Counter({
      registers,
      name: "sandpiper_network_bytes_total",
      help: "Bytes of connections of sandboxes that have ended.",
      labelNames: ["tenant", "direction"],
    });
  }

  count({ tenant: name, record, replaces }: FlowWrite): void {
    const { kind, decision, sentBytes, receivedBytes, endedAt, count } = record;
    if (this.#tenants.size < MAX_TENANTS) this.#tenants.add(name);
    const tenant = this.#tenants.has(name) ? name : OTHERS;
    // A connection that was written while it was open is written again at its end.
    if (replaces === undefined) this.#flows.inc({ tenant, kind, decision }, count);
    if (endedAt === null || kind !== "flow") return;
    this.#bytes.inc({ tenant, direction: "sent" }, sentBytes);
    this.#bytes.inc({ tenant, direction: "received" }, receivedBytes);
  }
}
