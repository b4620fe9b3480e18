import { ownerHasNoUrl } from "../../cluster/peer-errors.ts";
import type { FlowEntry } from "../../flows/flow-entry.ts";
import { suggestionOf } from "../../flows/suggestion-of.ts";
import type { SandboxRecord } from "../../records/sandbox-record.ts";
import type { Call, Handlers } from "../call.ts";
import { lastEventId, wantsEvents } from "../event-request.ts";
import { eventResponse } from "../server-sent-events.ts";

const DEFAULT_LIMIT = 100;

type Audit = Call<"getNetworkLog" | "getNetworkSuggestion" | "listNetworkRequests">;

export const networkAuditHandlers = {
  getNetworkLog(call) {
    const { query, request, deps } = call;
    const { id, endedAt } = sandboxOf(call);
    const { limit = DEFAULT_LIMIT, denied: deniedOnly } = query;
    const isFollowed = wantsEvents(request);
    const after = (isFollowed ? lastEventId(request) : undefined) ?? query.after;
    const filter = { deniedOnly, since: dateOf(query.since) };
    const { entries, dropped } = deps.flows.list(id, { ...filter, after, limit, newest: after === undefined });
    const cursor = entries.at(-1)?.cursor ?? after ?? 0;
    if (!isFollowed) return { items: entries.map(({ record }) => record), cursor, dropped };
    return eventResponse(call, async function* (signal) {
      yield* entries.map(eventOf);
      const rest = { ...filter, after: cursor };
      if (endedAt === null) for await (const entry of deps.flows.follow(id, rest, signal)) yield eventOf(entry);
      // Without it, the sandbox has moved: the reader continues on its new node.
      if (!signal.aborted && hasEnded(call)) yield { kind: "end", data: {} };
    });
  },

  getNetworkSuggestion(call) {
    const { query, deps } = call;
    return suggestionOf(deps.flows, sandboxOf(call).id, { since: dateOf(query.since), bundles: deps.networkBundles });
  },

  listNetworkRequests(call) {
    return { items: [...call.deps.approvals.list(sandboxOf(call).id)] };
  },

  async decideNetworkRequest({ principal, params, body: { decision }, deps }) {
    const { id } = deps.access.find(principal, params.id, { readOnly: false });
    const { name, address, port } = deps.approvals.get(id, params.request);
    const [host, ports] = [name ?? address ?? "", [port]];
    const rule = decision === "allow" ? { allow: host, ports } : { deny: host, ports };
    const policy = await deps.sandboxNetworks.prepend(principal, id, rule);
    // After the rule is stored, so that a connection that continues is one that stays allowed.
    deps.approvals.settle(id, params.request, decision);
    return policy;
  },
} satisfies Partial<Handlers>;

/** The node that owns a sandbox has its log. */
function sandboxOf({ principal, params, saved, deps }: Audit): SandboxRecord {
  if (typeof saved?.owner === "string") throw ownerHasNoUrl("network log", { id: saved.record.id, node: saved.owner });
  return saved?.record ?? deps.access.find(principal, params.id, { readOnly: true });
}

function hasEnded({ principal, params, deps }: Audit): boolean {
  try {
    return deps.access.find(principal, params.id, { readOnly: true }).endedAt !== null;
  } catch {
    return false;
  }
}

function eventOf({ cursor, record }: FlowEntry) {
  return { id: cursor, kind: record.endedAt === null ? "opened" : "ended", data: record };
}

function dateOf(instant: string | undefined): Date | undefined {
  return instant === undefined ? undefined : new Date(instant);
}
