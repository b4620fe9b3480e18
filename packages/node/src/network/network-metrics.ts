import type { FlowReason } from "@sandpiper/protocol";

/** Counts what the sandboxes of a node do on the network. */
export interface NetworkMetrics {
  /** A connection was allowed or denied. */
  connection(decision: "allowed" | "denied"): void;
  /** A connection, query or datagram was denied. */
  denied(reason: FlowReason): void;
  bytes(sent: number, received: number): void;
}

export const noNetworkMetrics: NetworkMetrics = { connection() {}, denied() {}, bytes() {} };
