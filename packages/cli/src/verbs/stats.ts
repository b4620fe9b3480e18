import type { SandboxMetricsBody } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { shortBytes, shortDuration, shortId } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandboxes } from "../target/find-sandbox.ts";
import { concurrently } from "../transfer/concurrently.ts";

const MAX_CONCURRENT = 16;

export const statsVerb: Verb = {
  name: "stats",
  summary: "show the CPU, memory and disk use of sandboxes",
  operands: ["[SANDBOX…]"],
  options: [jsonOption],
  details: "Without SANDBOX, shows all sandboxes in state ready.",
  async run(arguments_) {
    const client = await requireNode();
    const isAll = arguments_.operands.length === 0;
    const sandboxes = isAll
      ? await Array.fromAsync(client.sandboxes.list({ state: "ready" }))
      : await findSandboxes(client, arguments_.operands);
    const found = new Map<string, Row>();
    await concurrently(MAX_CONCURRENT, sandboxes, async (sandbox) => {
      const { id, info } = sandbox;
      try {
        found.set(id, { id, name: info.name, ...(await sandbox.metrics()) });
      } catch (error) {
        // A sandbox may end while the list is being read.
        if (!isAll) throw error;
      }
    });
    const rows = sandboxes.flatMap(({ id }) => found.get(id) ?? []);
    await showRows(arguments_, { columns, rows });
  },
};

interface Row extends SandboxMetricsBody {
  readonly id: string;
  readonly name: string | null;
}

const columns: readonly Column<Row>[] = [
  { title: "ID", cell: ({ id }) => shortId(id) },
  { title: "NAME", cell: ({ name }) => name ?? "" },
  { title: "CPU TIME", align: "right", cell: ({ cpuMs }) => `${(cpuMs / 1000).toFixed(2)} s` },
  { title: "MEMORY", align: "right", cell: (row) => ofTotal(row.memoryUsedBytes, row.memoryTotalBytes) },
  { title: "DISK", align: "right", cell: (row) => ofTotal(row.diskUsedBytes, row.diskTotalBytes) },
  { title: "PROCESSES", align: "right", cell: ({ processes }) => String(processes) },
  { title: "UP", align: "right", cell: ({ uptimeMs }) => shortDuration(uptimeMs) },
];

function ofTotal(usedBytes: number, totalBytes: number): string {
  return `${shortBytes(usedBytes)} / ${shortBytes(totalBytes)}`;
}
