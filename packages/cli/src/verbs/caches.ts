import type { CacheResource } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { shortBytes, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

const listCaches: Verb = {
  name: "caches ls",
  usage: "[OPTIONS]",
  summary: "list the caches of your projects, with their sizes and who has them mounted",
  options: [jsonOption],
  words: [],
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.caches.list() });
    return 0;
  },
};

const clearCaches: Verb = {
  name: "caches clear",
  usage: "PROJECT/NAME…",
  summary: "remove caches that no sandbox has mounted",
  options: [],
  operands: { min: 1, max: Number.POSITIVE_INFINITY, example: "sandpiper caches clear PROJECT/NAME" },
  async run({ operands }) {
    const targets = operands.map(parseCache);
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    for (const target of targets) await client.caches.clear(target);
    return 0;
  },
};

export const cachesVerb: Verb = {
  name: "caches",
  usage: "ls|clear",
  summary: "see and clear what the containers of a project share on the node",
  options: [],
  actions: [listCaches, clearCaches],
  run: async () => 0,
};

function parseCache(text: string): Pick<CacheResource, "project" | "name"> {
  const [, project, name] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (project !== undefined && name !== undefined) return { project, name };
  throw usageError(`${text} names no cache`, "write its project and its name, for example default/npm");
}

const columns: readonly Column<CacheResource>[] = [
  { title: "PROJECT", cell: ({ project }) => project },
  { title: "NAME", cell: ({ name }) => name },
  { title: "SIZE", align: "right", cell: ({ sizeBytes }) => shortBytes(sizeBytes) },
  { title: "USED BY", cell: ({ usedBy }) => usedBy.map(shortId).join(" ") },
];
