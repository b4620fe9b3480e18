import type { NetworkBody } from "@sandpiper/protocol";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { invalidValue } from "../command/usage-error.ts";

export const networkOption: Option = {
  name: "network",
  value: "POLICY",
  default: "none",
  summary:
    "hosts that the sandbox reaches: none, open, ask, or allow=HOST[:PORT],…; with docker also a network, such as bridge",
};

/** Any other word is the name of a network of a container's engine. */
const POLICY = /^(?:none|open|ask)$|[=,@*.:]/;

/** The network of a container's engine; undefined for a policy. */
export function engineNetwork(arguments_: Arguments): string | undefined {
  const text = arguments_.get("network");
  return text === undefined || POLICY.test(text) ? undefined : text;
}

/** The policy of `--network`; undefined if there is none. */
export async function networkFrom(arguments_: Arguments): Promise<NetworkBody | undefined> {
  const text = arguments_.get("network");
  return text === undefined || !POLICY.test(text) ? undefined : parsePolicyText("network", text);
}

/** For verbs about API keys. */
export const maxNetworkOption: Option = {
  name: "max-network",
  value: "POLICY",
  default: "any",
  summary: "most open network of the key's sandboxes: none, ask, allow=HOST[:PORT],…; or any",
};

/** Null for `any`, undefined when it was not given. */
export async function maxNetworkFrom(arguments_: Arguments): Promise<NetworkBody | null | undefined> {
  const text = arguments_.get("max-network");
  if (text === undefined || text === "any") return text === undefined ? undefined : null;
  return parsePolicyText("max-network", text);
}

async function parsePolicyText(name: string, text: string): Promise<NetworkBody> {
  // Loaded here, because --help must not load schemas.
  const { parseNetwork } = await import("@sandpiper/protocol");
  const network = parseNetwork(text);
  if (network !== undefined) return network;
  throw invalidValue(name, {
    value: text,
    expected: "none, open, ask, or rules",
    hint: `for example --${name} none, or --${name} allow=@pypi,api.example.com:443,deny=*.example.com`,
  });
}
