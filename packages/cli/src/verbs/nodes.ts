import type { NodeResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age, shortId } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

export const nodesVerb: Verb = {
  name: "nodes",
  summary: "list the nodes that share a store",
  options: [jsonOption],
  details:
    "An asterisk marks the node that answers. Other nodes cannot reach an unreachable node: its sandboxes move to the node\n" +
    "that receives a request.",
  learnMore: "docs/cluster.md",
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.nodes.list() });
  },
};

const columns: readonly Column<NodeResource>[] = [
  { title: "ID", cell: ({ id, isThisNode }) => `${shortId(id)}${isThisNode ? " *" : ""}` },
  { title: "URL", cell: ({ url }) => url ?? "unreachable" },
  { title: "STATE", cell: stateOf },
  { title: "SANDBOXES", align: "right", cell: ({ sandboxes }) => String(sandboxes) },
  { title: "VERSION", cell: ({ version }) => version },
  { title: "UP", align: "right", cell: ({ startedAt }) => age(startedAt) },
  { title: "SEEN", align: "right", cell: ({ seenAt }) => `${age(seenAt)} ago` },
];

function stateOf({ isAlive, isDraining }: NodeResource): string {
  if (!isAlive) return "gone";
  return isDraining ? "draining" : "alive";
}
