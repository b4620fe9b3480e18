import type { PoolResource } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { shapeFrom, shapeOptions } from "../options/sandbox-options.ts";
import { jsonOption } from "../options/shared-options.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

const MAX_TARGET = 1000;

const listPools: Verb = {
  name: "pool ls",
  summary: "list warm pools and their hit rates",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.pools.list() });
  },
};

const setPool: Verb = {
  name: "pool set",
  summary: "set the size of a warm pool",
  operands: ["COUNT"],
  options: [
    { name: "image", value: "IMAGE", default: "host", summary: "an image of the node; with docker, a reference" },
    ...shapeOptions,
    jsonOption,
  ],
  details: `A sandbox comes from the pool when it is created with exactly these options. A COUNT of 0 empties the pool.`,
  examples: ["sandpiper pool set 4 --memory 512"],
  async run(arguments_) {
    const target = parseTarget(arguments_.operands[0] as string);
    const shape = { ...shapeFrom(arguments_), image: arguments_.get("image") };
    const pool = await (await requireNode()).pools.set({ ...shape, target });
    await showRows(arguments_, { columns, rows: [pool], json: pool });
  },
};

export const poolVerb: Verb = {
  name: "pool",
  summary: "manage warm pools of started sandboxes",
  options: [],
  actions: [listPools, setPool],
};

function parseTarget(text: string): number {
  const target = /^\d{1,4}$/.test(text) ? Number(text) : MAX_TARGET + 1;
  if (target <= MAX_TARGET) return target;
  const message = `pool set: COUNT ${JSON.stringify(text)} is not a whole number from 0 to ${MAX_TARGET}`;
  throw usageError(message, "for example sandpiper pool set 4");
}

const columns: readonly Column<PoolResource>[] = [
  { title: "PROVIDER", cell: ({ key }) => key.provider },
  { title: "IMAGE", cell: ({ key }) => key.image },
  { title: "MEMORY", align: "right", cell: ({ key }) => `${key.memoryMib} MiB` },
  { title: "CPUS", align: "right", cell: ({ key }) => String(key.vcpuCount) },
  { title: "READY", align: "right", cell: ({ ready, target }) => `${ready}/${target}` },
  { title: "BOOTING", align: "right", cell: ({ booting }) => String(booting) },
  { title: "HITS", align: "right", cell: ({ hits }) => String(hits) },
  { title: "MISSES", align: "right", cell: ({ misses }) => String(misses) },
  { title: "HIT RATE", align: "right", cell: hitRate },
  { title: "FAILURES", align: "right", cell: ({ failures }) => String(failures) },
  {
    title: "WAIT",
    align: "right",
    cell: ({ meanWaitMs }) => (meanWaitMs === null ? "" : `${meanWaitMs.toFixed(1)} ms`),
  },
];

function hitRate({ hits, misses }: PoolResource): string {
  return hits + misses === 0 ? "" : `${Math.round((100 * hits) / (hits + misses))} %`;
}
