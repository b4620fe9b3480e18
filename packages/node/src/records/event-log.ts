import type { EventBody, EventKind, SandboxId } from "@sandpiper/protocol";

export interface NewEvent {
  readonly kind: EventKind;
  /** Null: of the whole node, for admins only. */
  readonly tenant: string | null;
  readonly sandboxId: SandboxId | null;
  readonly details?: EventBody["details"] | undefined;
}

export interface EventQuery {
  /** Undefined: of all tenants. */
  readonly tenant?: string | undefined;
  readonly sandboxId?: SandboxId | undefined;
  /** Only events after this id. */
  readonly after: number;
}

/** What happened, kept in order, bounded in number, readable from any id that is still there. */
export interface EventLog {
  emit(event: NewEvent): EventBody;
  list(query: EventQuery & { readonly limit: number }): readonly EventBody[];
  /** Those after an id, and then each as it happens, at the reader's pace; ends with the signal. */
  follow(query: EventQuery, signal: AbortSignal): AsyncIterable<EventBody>;
}
