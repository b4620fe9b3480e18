import type { VolumeResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age, shortBytes, shortId } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

const listVolumes: Verb = {
  name: "volumes ls",
  summary: "list kept volumes, their sizes and the sandboxes that mount them",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.volumes.list() });
  },
};

const removeVolumes: Verb = {
  name: "volumes rm",
  summary: "delete kept volumes that no sandbox mounts",
  operands: ["NAME…"],
  options: [],
  details: "Does not ask for confirmation.",
  examples: ["sandpiper volumes rm sandpiper-data-01234567-89ab-4cde-8f01-23456789abcd"],
  async run({ operands }) {
    const client = await requireNode();
    for (const name of operands) await client.volumes.remove(name);
  },
};

export const volumesVerb: Verb = {
  name: "volumes",
  summary: "list and delete the volumes that destroyed sandboxes left",
  options: [],
  details: `"sandpiper rm --keep-volumes" keeps the volumes of a container. Mount one in a new sandbox with
"sandpiper create --provider docker --volume NAME".`,
  actions: [listVolumes, removeVolumes],
  learnMore: "docs/docker.md",
};

const columns: readonly Column<VolumeResource>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "PATH", cell: ({ path }) => path },
  { title: "SIZE", align: "right", cell: ({ sizeBytes }) => shortBytes(sizeBytes) },
  { title: "KEPT", cell: ({ keptAt }) => age(keptAt) },
  { title: "USED BY", cell: ({ usedBy }) => usedBy.map(shortId).join(" ") },
];
