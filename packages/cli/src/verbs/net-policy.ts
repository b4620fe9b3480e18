import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { networkLines } from "../output/network-lines.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

const jsonOption = { name: "json", summary: "print the network as a JSON object" };

export const netShowVerb: Verb = {
  name: "net show",
  summary: "show which hosts a sandbox may reach",
  operands: ["SANDBOX"],
  options: [jsonOption],
  examples: ["sandpiper net show build"],
  learnMore: "docs/network.md",
  async run(arguments_) {
    const { network } = await firstSandbox(arguments_);
    const policy = await network.get();
    await showResult(arguments_, { json: policy, lines: networkLines(policy) });
    return 0;
  },
};

export const netSetVerb: Verb = {
  name: "net set",
  summary: "change which hosts a sandbox may reach, at once",
  operands: ["SANDBOX", "NETWORK"],
  options: [jsonOption],
  details: `NETWORK is none, open, ask, or rules: targets after allow= or deny=, joined by commas. A target is a host name,
"*." before a host name for its sub-domains, an address, a network, or @ and the name of a bundle, and may end with ports.
The first rule that fits decides. Connections that are no longer allowed end.`,
  examples: [
    "sandpiper net set build none",
    "sandpiper net set build allow=@pypi,api.example.com:443",
    "sandpiper net set build deny=*.internal.example.com,allow=*.example.com:80+443",
  ],
  learnMore: "docs/network.md",
  async run(arguments_) {
    const [, text = ""] = arguments_.operands;
    // Loaded here, because --help must not load schemas.
    const { NETWORK_SYNTAX, parseNetwork } = await import("@sandpiper/protocol");
    const body = parseNetwork(text.replace(/^--network[= ]/, ""));
    if (body === undefined) {
      throw usageError(
        `invalid network ${JSON.stringify(text)}: expected ${NETWORK_SYNTAX}`,
        "see sandpiper net set --help",
      );
    }
    const { network } = await firstSandbox(arguments_);
    const policy = await network.set(body);
    await showResult(arguments_, { json: policy, lines: networkLines(policy) });
    return 0;
  },
};
