import type { Verb } from "../command/verb.ts";
import { netLogVerb, netSuggestVerb } from "./net-log.ts";
import { netSetVerb, netShowVerb } from "./net-policy.ts";
import { netApproveVerb, netDenyVerb, netRequestsVerb } from "./net-requests.ts";

export const netVerb: Verb = {
  name: "net",
  summary: "control and watch the network of sandboxes",
  options: [],
  actions: [netShowVerb, netSetVerb, netLogVerb, netSuggestVerb, netRequestsVerb, netApproveVerb, netDenyVerb],
};
