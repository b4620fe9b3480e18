import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";
import { withProgress } from "../output/progress.ts";
import { requireNode } from "../target/find-node.ts";

const drainNode: Verb = {
  name: "node drain",
  summary: "save and release all sandboxes of the node, and refuse new ones",
  options: [
    {
      name: "deadline",
      value: "DURATION",
      summary: "stop waiting after DURATION, such as 30 (seconds) or 2m, instead of the configured deadline",
    },
    quietOption,
  ],
  details: "Drains the node that SANDPIPER_URL names. Other nodes of the same store take over its sandboxes.",
  examples: ["SANDPIPER_URL=http://10.0.0.3:4747 sandpiper node drain"],
  learnMore: "docs/cluster.md",
  async run(arguments_) {
    const deadlineMs = parseDuration(arguments_, "deadline");
    const client = await requireNode();
    await withProgress("draining", arguments_, () => client.nodes.drain({ deadlineMs }));
  },
};

export const nodeVerb: Verb = {
  name: "node",
  summary: "take a node out of service",
  options: [],
  actions: [drainNode],
};
