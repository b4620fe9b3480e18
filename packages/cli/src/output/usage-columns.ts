import type { Quota, Usage } from "@sandpiper/sdk";
import { shortBytes } from "./format.ts";
import type { Column } from "./table.ts";

interface Metered {
  readonly quota: Quota;
  readonly usage?: Usage | undefined;
}

const MIB = 1024 * 1024;

/** What a key or a tenant uses, and its limits. */
export const usageColumns: readonly Column<Metered>[] = [
  { title: "SANDBOXES", align: "right", cell: (row) => used(row, "sandboxes", "maxSandboxes") },
  { title: "MEMORY", align: "right", cell: (row) => used(row, "memoryMib", "maxMemoryMib", MIB) },
  { title: "CPUS", align: "right", cell: (row) => used(row, "vcpuCount", "maxVcpuCount") },
  { title: "DISK", align: "right", cell: (row) => used(row, "diskMib", "maxDiskMib", MIB) },
  { title: "CHECKPOINTS", align: "right", cell: (row) => used(row, "checkpoints", "maxCheckpoints") },
  { title: "CHECKPOINT SIZE", align: "right", cell: (row) => used(row, "checkpointBytes", "maxCheckpointBytes", 1) },
];

/** With `unitBytes`, the values are sizes. */
function used({ quota, usage }: Metered, measure: keyof Usage, limit: keyof Quota, unitBytes?: number): string {
  const text = (value: number) => (unitBytes === undefined ? String(value) : shortBytes(value * unitBytes));
  const [current, most] = [usage?.[measure], quota[limit]];
  return `${current === undefined ? "-" : text(current)}${most === null ? "" : ` of ${text(most)}`}`;
}
