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
  if (text === undefined || !POLICY.test(text)) return undefined;
  // Loaded here, because --help must not load schemas.
  const { parseNetwork } = await import("@sandpiper/protocol");
  const network = parseNetwork(text);
  if (network !== undefined) return network;
  throw invalidValue("network", {
    value: text,
    expected: "none, open, ask, or rules",
    hint: "for example --network open, or --network allow=@pypi,api.example.com:443,deny=*.example.com",
  });
}
