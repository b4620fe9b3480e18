import type { PoolResource } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { shapeFrom, shapeOptions } from "../options/sandbox-options.ts";
import { jsonOption, printJson, showRows, wantsJson } from "../output/show.ts";
import type { Column } from "../output/table.ts";

const MAX_TARGET = 1000;

const listPools: Verb = {
  name: "pool ls",
  usage: "[OPTIONS]",
  summary: "list what is kept ready, and how well that works",
  options: [jsonOption],
  words: [],
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.pools.list() });
    return 0;
  },
};

const setPool: Verb = {
  name: "pool set",
  usage: "[OPTIONS] COUNT",
  summary: "set how many sandboxes of one shape are kept ready",
  options: [
    { name: "image", value: "IMAGE", summary: "an image of the node (host), or with docker a reference" },
    ...shapeOptions,
    jsonOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper pool set COUNT" },
  details: `A sandbox is taken from the pool when it is created with exactly these limits; 0 keeps none ready.

Example:
  sandpiper pool set 4 --memory 512`,
  async run(arguments_) {
    const target = parseTarget(arguments_.operands[0] as string);
    const shape = { ...shapeFrom(arguments_), image: arguments_.get("image") };
    const { requireNode } = await import("../target/find-node.ts");
    const pool = await (await requireNode()).pools.set({ ...shape, target });
    if (wantsJson(arguments_)) await printJson(pool);
    else await showRows(arguments_, { columns, rows: [pool] });
    return 0;
  },
};

export const poolVerb: Verb = {
  name: "pool",
  usage: "ls|set",
  summary: "say how many sandboxes are kept ready, and see them",
  options: [],
  actions: [listPools, setPool],
  run: async () => 0,
};

function parseTarget(text: string): number {
  const target = /^\d{1,4}$/.test(text) ? Number(text) : MAX_TARGET + 1;
  if (target <= MAX_TARGET) return target;
  throw usageError(`COUNT ${text} is no whole number from 0 to ${MAX_TARGET}`, "for example sandpiper pool set 4");
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
  { title: "FAILURES", align: "right", cell: ({ failures }) => String(failures) },
  {
    title: "WAIT",
    align: "right",
    cell: ({ meanWaitMs }) => (meanWaitMs === null ? "" : `${meanWaitMs.toFixed(1)} ms`),
  },
];
