import type { ShippedRecord } from "./shipped-record.ts";

/** Where the node ships records to. */
export interface Receiver extends AsyncDisposable {
  /** For logs and metrics. */
  readonly name: "file" | "syslog" | "otlp";
  /**
   * Sends all records, or rejects: then they are sent again. Returns how many the receiver refused for good.
   * Called again only after it has settled.
   */
  send(records: readonly ShippedRecord[], signal: AbortSignal): Promise<number>;
}
