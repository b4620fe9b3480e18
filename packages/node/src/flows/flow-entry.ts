import type { FlowRecord } from "@sandpiper/protocol";

/** A record with its place in the log. */
export interface FlowEntry {
  /** Ascends with each change of the log, also across restarts and nodes: it is derived from the time. */
  readonly cursor: number;
  readonly tenant: string;
  readonly record: FlowRecord;
}

export interface FlowQuery {
  /** Only what was recorded, or ended, after this cursor. */
  readonly after?: number | undefined;
  readonly deniedOnly?: boolean | undefined;
  /** Only what began at or after this instant. */
  readonly since?: Date | undefined;
}

/** A part of a sandbox's log. */
export interface FlowPage {
  readonly entries: readonly FlowEntry[];
  /** The records of this sandbox that gave way to newer ones. */
  readonly dropped: number;
}
