import { networkPolicySchema } from "./network.ts";
import {
  decideNetworkRequestBodySchema,
  networkLogQuerySchema,
  networkLogSchema,
  networkRequestListSchema,
  networkSuggestionQuerySchema,
  networkSuggestionSchema,
} from "./network-audit.ts";
import { change, json, look, type Route, SANDBOX } from "./route.ts";

const NETWORK = `${SANDBOX}/network`;

/** What sandboxes did on the network, and requests for hosts that no rule is about. */
export const networkAuditRoutes = {
  getNetworkLog: {
    ...look,
    path: `${NETWORK}/log`,
    summary: "List a sandbox's connections and DNS queries; with Accept: text/event-stream, also stream new ones",
    access: "sandbox",
    query: networkLogQuerySchema,
    answer: json(networkLogSchema),
  },
  getNetworkSuggestion: {
    ...look,
    path: `${NETWORK}/suggestion`,
    summary: "Suggest the fewest rules that allow the recorded connections",
    access: "sandbox",
    query: networkSuggestionQuerySchema,
    answer: json(networkSuggestionSchema),
  },
  listNetworkRequests: {
    ...look,
    path: `${NETWORK}/requests`,
    summary: "List the hosts that a sandbox wants to reach and that wait for a decision",
    access: "sandbox",
    answer: json(networkRequestListSchema),
  },
  decideNetworkRequest: {
    ...change,
    path: `${NETWORK}/requests/{request}`,
    summary: "Allow or deny a host that a sandbox wants to reach; the decision becomes a rule",
    // Not for the sandbox's token: a sandbox that holds it would answer its own requests.
    access: "sandboxes",
    body: json(decideNetworkRequestBodySchema),
    answer: json(networkPolicySchema),
  },
} as const satisfies Record<string, Route>;
