import { SandboxError } from "@sandpiper/core";
import type { Principal } from "../../auth/principal.ts";
import { eventsElsewhere } from "../../cluster/peer-errors.ts";
import type { Handlers } from "../call.ts";
import { eventResponse } from "../server-sent-events.ts";

const DEFAULT_LIMIT = 100;

export const eventHandlers = {
  listEvents(call) {
    const { principal, query, request, saved, deps } = call;
    if (typeof saved?.owner === "string") throw eventsElsewhere(saved.record.id, saved.owner);
    const { after = 0, replay = false, limit = DEFAULT_LIMIT } = query;
    const wanted = { tenant: tenantOf(principal), sandboxId: query.sandbox, after, replay };
    if (!(request.headers.get("accept") ?? "").includes("text/event-stream")) {
      return { items: [...deps.feed.list({ ...wanted, limit })] };
    }
    const last = lastEventId(request);
    const from = last === undefined ? wanted : { ...wanted, after: last, replay: false };
    return eventResponse(call, async function* (signal) {
      for await (const event of deps.feed.follow(from, signal)) {
        // Without an id: a browser that loses the connection during the replay begins again.
        const id = event.kind === "sandbox.state" ? undefined : event.id;
        yield { id, kind: event.kind, data: event };
      }
    });
  },
} satisfies Partial<Handlers>;

/** A browser that reconnects sends the last id it has seen, which overrides the query. */
function lastEventId(request: Request): number | undefined {
  const text = request.headers.get("last-event-id");
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new SandboxError("invalid_last_event_id", { message: "the Last-Event-ID header is not the id of an event" });
}

/** Undefined for admins, who see all tenants. */
function tenantOf(principal: Principal): string | undefined {
  return principal.kind === "key" && principal.scopes.includes("admin") ? undefined : principal.tenant;
}
