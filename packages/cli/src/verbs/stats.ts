import type { SandboxMetricsBody } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { shortBytes, shortDuration, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

const AT_ONCE = 16;

export const statsVerb: Verb = {
  name: "stats",
  usage: "[OPTIONS] [SANDBOX…]",
  summary: "show what sandboxes use: all that are ready, or those named",
  options: [jsonOption],
  operands: { min: 0, max: Number.POSITIVE_INFINITY, example: "sandpiper stats" },
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandboxes } = await import("../target/find-sandbox.ts");
    const { concurrently } = await import("../transfer/concurrently.ts");
    const client = await requireNode();
    const isAll = arguments_.operands.length === 0;
    const sandboxes = isAll
      ? await Array.fromAsync(client.sandboxes.list({ state: "ready" }))
      : await findSandboxes(client, arguments_.operands);
    const found = new Map<string, Row>();
    await concurrently(AT_ONCE, sandboxes, async (sandbox) => {
      const { id, info } = sandbox;
      try {
        found.set(id, { id, name: info.name, ...(await sandbox.metrics()) });
      } catch (error) {
        // One of many may end while they are being looked at.
        if (!isAll) throw error;
      }
    });
    const rows = sandboxes.flatMap(({ id }) => found.get(id) ?? []);
    await showRows(arguments_, { columns, rows });
    return 0;
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
