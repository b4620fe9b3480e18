import type { Verb } from "../command/verb.ts";
import { quietOption, sandboxJsonOption } from "../options/shared-options.ts";
import { shortId } from "../output/format.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const moveVerb: Verb = {
  name: "move",
  summary: "move a sandbox to another node of the cluster",
  operands: ["SANDBOX"],
  options: [
    {
      name: "to",
      value: "NODE",
      summary: "the ID of the node, or the beginning of it (default: the least loaded one that accepts the sandbox)",
      completes: "node",
    },
    { name: "takeover", summary: "move the sandbox even if a client is attached to it with a session" },
    sandboxJsonOption,
    quietOption,
  ],
  details: `Saves the sandbox, and restores it on the other node. Its processes and terminals continue there, and clients stay
connected. With a provider that saves only files, such as docker, its processes end.

A sandbox that is on NODE already stays there. "sandpiper nodes" lists the nodes.`,
  examples: ["sandpiper move build", "sandpiper move build --to 3f2a91c0"],
  learnMore: "docs/cluster.md",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    const { node: from } = sandbox.info;
    const options = { takeover: arguments_.has("takeover") };
    const { token: _, ...info } = await withProgress("moving", arguments_, () =>
      sandbox.moveTo(arguments_.get("to"), options),
    );
    const line = `${from === info.node ? "already on" : "moved to"} node ${shortId(info.node ?? "")}`;
    await showResult(arguments_, { json: info, lines: arguments_.has("quiet") ? [] : [line] });
  },
};
