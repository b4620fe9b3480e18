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
    const wanted = { tenant: tenantOf(principal), sandboxId: query.sandbox, after: query.after ?? 0 };
    if (!(request.headers.get("accept") ?? "").includes("text/event-stream")) {
      return { items: [...deps.events.list({ ...wanted, limit: query.limit ?? DEFAULT_LIMIT })] };
    }
    const after = lastEventId(request) ?? wanted.after;
    return eventResponse(call, async function* (signal) {
      for await (const event of deps.events.follow({ ...wanted, after }, signal)) {
        yield { id: event.id, kind: event.kind, data: event };
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
