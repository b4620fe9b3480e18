import type { Verb } from "../command/verb.ts";
import { parseDuration } from "../options/duration-option.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";

const drainNode: Verb = {
  name: "node drain",
  usage: "[OPTIONS]",
  summary: "have the node save its sandboxes, let them go and take no new ones",
  options: [
    { name: "deadline", value: "TIME", summary: "how long it may take, such as 30 (seconds) or 2m (as configured)" },
    quietOption,
  ],
  words: [],
  details: "SANDPIPER_URL says which node. Other nodes of the same store take its sandboxes over.",
  async run(arguments_) {
    const deadlineMs = parseDuration(arguments_, "deadline");
    const { requireNode } = await import("../target/find-node.ts");
    const { Progress } = await import("../output/progress.ts");
    const client = await requireNode();
    using _ = new Progress("draining", progressOf(arguments_));
    await client.nodes.drain({ deadlineMs });
    return 0;
  },
};

export const nodeVerb: Verb = {
  name: "node",
  usage: "drain",
  summary: "take a node out of service",
  options: [],
  actions: [drainNode],
  run: async () => 0,
};
