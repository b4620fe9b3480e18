import type { FlowRecord, SandboxId } from "@sandpiper/protocol";

/** Whose flow it is. */
export interface FlowOwner {
  readonly sandboxId: SandboxId;
  readonly tenant: string;
}

/** Receives a record of each flow, query and refusal. Its methods return quickly and never throw. */
export interface FlowSink {
  /** An allowed flow has begun; `closed` follows with the same id. */
  opened(record: FlowRecord, owner: FlowOwner): void;
  /** A flow has ended, or something was decided that does not last: a denial, a query, refused datagrams. */
  closed(record: FlowRecord, owner: FlowOwner): void;
}

/** For nodes that keep no log of flows. */
export const noFlowSink: FlowSink = { opened() {}, closed() {} };
