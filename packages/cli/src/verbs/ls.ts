import type { Verb } from "../command/verb.ts";
import { parseLabelFilters } from "../options/label-option.ts";
import { shortDuration, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

const states = ["creating", "ready", "paused", "checkpointing", "stopped", "restoring", "failed", "destroyed"] as const;

export const lsVerb: Verb = {
  name: "ls",
  usage: "[OPTIONS]",
  summary: "list the node's sandboxes, newest first",
  options: [
    { name: "state", value: "STATE", choices: states, summary: "only those in this state" },
    { name: "label", value: "KEY[=VALUE]", isRepeatable: true, summary: "only those with this label" },
    jsonOption,
  ],
  words: [],
  details: "As JSON it is an array of what GET /v1/sandboxes/{id} tells, without the tokens.",
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    const state = arguments_.get("state") as (typeof states)[number] | undefined;
    const sandboxes = await Array.fromAsync(
      client.sandboxes.list({ ...(state && { state }), labels: parseLabelFilters(arguments_.all("label")) }),
    );
    // A token opens its sandbox; a list is too easily kept somewhere.
    const rows = sandboxes.map(({ info: { token: _, ...row } }) => row);
    await showRows(arguments_, { columns: columnsAt(Date.now(), rows), rows });
    return 0;
  },
};

interface Row {
  readonly id: string;
  readonly name: string | null;
  readonly state: string;
  readonly provider: string;
  readonly memoryMib: number;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: Readonly<Record<string, string>>;
}

function columnsAt(nowMs: number, rows: readonly Row[]): readonly Column<Row>[] {
  const publishes = rows.some(({ addresses }) => Object.keys(addresses).length > 0);
  return [
    { title: "ID", cell: ({ id }) => shortId(id) },
    { title: "NAME", cell: ({ name }) => name ?? "" },
    { title: "STATE", cell: ({ state }) => state },
    { title: "PROVIDER", cell: ({ provider }) => provider },
    { title: "MEMORY", align: "right", cell: ({ memoryMib }) => `${memoryMib} MiB` },
    { title: "AGE", align: "right", cell: ({ createdAt }) => shortDuration(nowMs - Date.parse(createdAt)) },
    {
      title: "ENDS IN",
      align: "right",
      cell: ({ expiresAt }) => (expiresAt === null ? "" : shortDuration(Date.parse(expiresAt) - nowMs)),
    },
    ...(publishes ? [{ title: "PORTS", cell: ({ addresses }: Row) => pairs(addresses, "→") }] : []),
    { title: "LABELS", cell: ({ labels }) => pairs(labels, "=") },
  ];
}

function pairs(values: Readonly<Record<string, string>>, sign: string): string {
  return Object.entries(values)
    .map((pair) => pair.join(sign))
    .join(" ");
}
