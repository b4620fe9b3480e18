import type { Principal } from "../../auth/principal.ts";
import { ownerHasNoUrl } from "../../cluster/peer-errors.ts";
import type { Handlers } from "../call.ts";
import { lastEventId, wantsEvents } from "../event-request.ts";
import { eventResponse } from "../server-sent-events.ts";

const DEFAULT_LIMIT = 100;

export const eventHandlers = {
  listEvents(call) {
    const { principal, query, request, saved, deps } = call;
    if (typeof saved?.owner === "string") throw ownerHasNoUrl("events", { id: saved.record.id, node: saved.owner });
    const { after = 0, replay = false, limit = DEFAULT_LIMIT } = query;
    const wanted = { tenant: tenantOf(principal), sandboxId: query.sandbox, after, replay };
    if (!wantsEvents(request)) {
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

/** Undefined for admins, who see all tenants. */
function tenantOf(principal: Principal): string | undefined {
  return principal.kind === "key" && principal.scopes.includes("admin") ? undefined : principal.tenant;
}
