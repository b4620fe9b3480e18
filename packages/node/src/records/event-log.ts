import type { EventBody, EventKind, SandboxId } from "@sandpiper/protocol";

export interface NewEvent {
  readonly kind: EventKind;
  /** Null for events of the node itself, which only admins see. */
  readonly tenant: string | null;
  readonly sandboxId: SandboxId | null;
  readonly details?: EventBody["details"] | undefined;
}

export interface EventQuery {
  /** Undefined for all tenants. */
  readonly tenant?: string | undefined;
  readonly sandboxId?: SandboxId | undefined;
  /** Only events after this id. */
  readonly after: number;
}

/** A bounded, ordered log of events, readable from any event id that it still holds. */
export interface EventLog {
  /** The id of the newest event; 0 if there was never one. */
  readonly newestId: number;
  emit(event: NewEvent): EventBody;
  list(query: EventQuery & { readonly limit: number }): readonly EventBody[];
  /** Yields the events after an id and then new ones, at the reader's pace, until the signal aborts. */
  follow(query: EventQuery, signal: AbortSignal): AsyncIterable<EventBody>;
}
