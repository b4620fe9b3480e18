import type { SandboxResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { parseLabelFilters } from "../options/values.ts";
import { age, shortId, timeUntil } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

const states = ["creating", "ready", "paused", "checkpointing", "stopped", "restoring", "failed", "destroyed"] as const;

export const lsVerb: Verb = {
  name: "ls",
  summary: "list sandboxes, newest first",
  options: [
    { name: "state", value: "STATE", choices: states, summary: "list only sandboxes in this state" },
    { name: "label", value: "KEY[=VALUE]", isRepeatable: true, summary: "list only sandboxes with this label" },
    jsonOption,
  ],
  details: "JSON output is an array of the objects that GET /v1/sandboxes/{id} returns, without their tokens.",
  async run(arguments_) {
    const client = await requireNode();
    const state = arguments_.get("state") as (typeof states)[number] | undefined;
    const sandboxes = await Array.fromAsync(
      client.sandboxes.list({ ...(state && { state }), labels: parseLabelFilters(arguments_.all("label")) }),
    );
    // A token gives access to its sandbox, and printed text is easily kept in a log.
    const rows = sandboxes.map(({ info: { token: _, ...row } }) => row);
    await showRows(arguments_, { columns: columnsFor(rows), rows });
  },
};

type Row = Omit<SandboxResource, "token">;

function columnsFor(rows: readonly Row[]): readonly Column<Row>[] {
  const publishes = rows.some(({ addresses }) => Object.keys(addresses).length > 0);
  return [
    { title: "ID", cell: ({ id }) => shortId(id) },
    { title: "NAME", cell: ({ name }) => name ?? "" },
    { title: "STATE", cell: ({ state }) => state },
    { title: "PROVIDER", cell: ({ provider }) => provider },
    { title: "MEMORY", align: "right", cell: ({ memoryMib }) => `${memoryMib} MiB` },
    { title: "AGE", align: "right", cell: ({ createdAt }) => age(createdAt) },
    { title: "EXPIRES IN", align: "right", cell: ({ expiresAt }) => timeUntil(expiresAt) },
    ...(publishes ? [{ title: "PORTS", cell: ({ addresses }: Row) => pairs(addresses, "→") }] : []),
    { title: "LABELS", cell: ({ labels }) => pairs(labels, "=") },
  ];
}

function pairs(values: Readonly<Record<string, string>>, sign: string): string {
  return Object.entries(values)
    .map((pair) => pair.join(sign))
    .join(" ");
}
