import type { Clock } from "@sandpiper/core";
import type { EventBody } from "@sandpiper/protocol";
import type { EventLog, EventQuery } from "../records/event-log.ts";
import type { ListedSandbox } from "../records/sandbox-record.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

const PAGE = 1000;

export interface EventFeedOptions {
  readonly events: EventLog;
  readonly registry: Pick<SandboxRegistry, "record" | "list">;
  readonly clock: Clock;
}

export interface FeedQuery extends EventQuery {
  /** Begin with the current state of every sandbox instead of past events. */
  readonly replay: boolean;
}

/** The node's events for callers: past ones, or the current state of its sandboxes, and then new ones without a gap. */
export class EventFeed {
  readonly #options: EventFeedOptions;

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  list({ replay, ...query }: FeedQuery & { readonly limit: number }): readonly EventBody[] {
    return replay ? this.#states(query) : this.#options.events.list(query);
  }

  async *follow({ replay, ...query }: FeedQuery, signal: AbortSignal): AsyncGenerator<EventBody, void, undefined> {
    const { events } = this.#options;
    // Read in one turn of the event loop: no event falls between the states and what follows.
    const [states, after] = replay ? [this.#states(query), events.newestId] : [[], query.after];
    for (const state of states) {
      if (signal.aborted) return;
      yield state;
    }
    yield* events.follow({ ...query, after }, signal);
  }

  /** One event for each sandbox that is not destroyed. */
  #states({ tenant, sandboxId }: Omit<EventQuery, "after">): readonly EventBody[] {
    const { events, clock } = this.#options;
    const at = clock.now().toISOString();
    return this.#records({ tenant, sandboxId }).map(({ id, state, name, provider, stoppedAt, failure }) => ({
      id: events.newestId,
      at,
      kind: "sandbox.state",
      sandboxId: id,
      details: { state, name, provider, stoppedAt: stoppedAt?.toISOString() ?? null, failure },
    }));
  }

  #records({ tenant, sandboxId }: Omit<EventQuery, "after">): readonly ListedSandbox[] {
    const { registry } = this.#options;
    if (sandboxId !== undefined) {
      const record = registry.record(sandboxId, { tenant });
      return record === undefined || record.state === "destroyed" ? [] : [record];
    }
    const found: ListedSandbox[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = registry.list({ tenant, limit: PAGE, cursor });
      found.push(...page.items);
      cursor = page.nextCursor;
    }
    return found;
  }
}
