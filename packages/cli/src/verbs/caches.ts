import type { CacheResource } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { shortBytes, shortId } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

const listCaches: Verb = {
  name: "caches ls",
  summary: "list caches, their sizes and the sandboxes that use them",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.caches.list() });
  },
};

const clearCaches: Verb = {
  name: "caches clear",
  summary: "delete caches that no sandbox uses",
  operands: ["PROJECT/NAME…"],
  options: [],
  examples: ["sandpiper caches clear default/npm"],
  async run({ operands }) {
    const targets = operands.map(parseCache);
    const client = await requireNode();
    for (const target of targets) await client.caches.clear(target);
  },
};

export const cachesVerb: Verb = {
  name: "caches",
  summary: "list and delete the caches that containers of a project share",
  options: [],
  actions: [listCaches, clearCaches],
};

function parseCache(text: string): Pick<CacheResource, "project" | "name"> {
  const [, project, name] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (project !== undefined && name !== undefined) return { project, name };
  const hint = "write the project and the name, for example default/npm";
  throw usageError(`caches clear: ${JSON.stringify(text)} is not PROJECT/NAME`, hint);
}

const columns: readonly Column<CacheResource>[] = [
  { title: "PROJECT", cell: ({ project }) => project },
  { title: "NAME", cell: ({ name }) => name },
  { title: "SIZE", align: "right", cell: ({ sizeBytes }) => shortBytes(sizeBytes) },
  { title: "USED BY", cell: ({ usedBy }) => usedBy.map(shortId).join(" ") },
];
