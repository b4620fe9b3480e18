import type { NodeResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { shortDuration, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

export const nodesVerb: Verb = {
  name: "nodes",
  usage: "[OPTIONS]",
  summary: "list the nodes that share a store, and what each holds",
  options: [jsonOption],
  words: [],
  details: "The one that answers is marked with a star.",
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    await showRows(arguments_, { columns: columnsAt(Date.now()), rows: await client.nodes.list() });
    return 0;
  },
};

function columnsAt(nowMs: number): readonly Column<NodeResource>[] {
  return [
    { title: "ID", cell: ({ id, isThisNode }) => `${shortId(id)}${isThisNode ? " *" : ""}` },
    { title: "URL", cell: ({ url }) => url },
    { title: "STATE", cell: stateOf },
    { title: "SANDBOXES", align: "right", cell: ({ sandboxes }) => String(sandboxes) },
    { title: "VERSION", cell: ({ version }) => version },
    { title: "UP", align: "right", cell: ({ startedAt }) => shortDuration(nowMs - Date.parse(startedAt)) },
    { title: "SEEN", align: "right", cell: ({ seenAt }) => `${shortDuration(nowMs - Date.parse(seenAt))} ago` },
  ];
}

function stateOf({ isAlive, isDraining }: NodeResource): string {
  if (!isAlive) return "gone";
  return isDraining ? "draining" : "alive";
}
