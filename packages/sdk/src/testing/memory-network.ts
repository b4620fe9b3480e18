import {
  type FlowRecord,
  type NetworkLog,
  type NetworkRequest,
  type NetworkRule,
  type NetworkSuggestion,
  ruleText,
  SandboxError,
} from "@sandpiper/protocol";

/** What a test lets a sandbox do on the network. */
export interface MemoryNetwork {
  /** Its log, oldest first; the cursor of a record is its position, counted from 1. */
  readonly flows: FlowRecord[];
  /** Hosts that wait for a decision. */
  readonly requests: NetworkRequest[];
}

/** Turns a request into a rule. */
export function decideRequest({ requests }: MemoryNetwork, id: string, decision: "allow" | "deny"): NetworkRule {
  const index = requests.findIndex((request) => request.id === id);
  const [request] = index === -1 ? [] : requests.splice(index, 1);
  if (request === undefined) throw new SandboxError("no_such_network_request", { message: `no request ${id}` });
  const host = request.name ?? request.address ?? "";
  const ports = [request.port];
  return decision === "allow" ? { allow: host, ports } : { deny: host, ports };
}

/** Lists like a node, but drops nothing. */
export function listFlows({ flows }: MemoryNetwork, query: URLSearchParams): NetworkLog {
  const [after, limit] = [query.get("after"), Number(query.get("limit") ?? 100)];
  const since = Date.parse(query.get("since") ?? "1970-01-01T00:00:00.000Z");
  const found = flows
    .map((record, index) => ({ record, cursor: index + 1 }))
    .filter(({ cursor }) => cursor > Number(after ?? 0))
    .filter(({ record }) => query.get("denied") !== "true" || record.decision === "denied")
    .filter(({ record }) => Date.parse(record.at) >= since);
  const shown = after === null ? found.slice(-limit) : found.slice(0, limit);
  const cursor = shown.at(-1)?.cursor ?? Number(after ?? 0);
  return { items: shown.map(({ record }) => record), cursor, dropped: 0 };
}

/** The log as server-sent events, and its end: nothing happens while it is followed. */
export function streamFlows(network: MemoryNetwork, query: URLSearchParams): Uint8Array {
  const { items, cursor } = listFlows(network, query);
  const blocks = items.map((record, index) => {
    const id = cursor - items.length + index + 1;
    return `id: ${id}\nevent: ${record.endedAt === null ? "opened" : "ended"}\ndata: ${JSON.stringify(record)}\n\n`;
  });
  return new TextEncoder().encode(`${blocks.join("")}event: end\ndata: {}\n\n`);
}

/** One rule for each host and port, without bundles and wildcards. */
export function suggestRules({ flows }: MemoryNetwork): NetworkSuggestion {
  const hosts = new Map(
    flows.map(({ name, address, port }) => [`${name ?? address} ${port}`, { name, address, port }]),
  );
  const rules = [...hosts.values()].map(({ name, address, port }) => ({
    allow: name ?? address ?? "*",
    ports: [port ?? 443],
  }));
  const texts = rules.map((rule) => ruleText(rule).slice("allow=".length));
  return { rules, text: rules.length === 0 ? null : `allow=${texts.join(",")}`, records: flows.length, dropped: 0 };
}
