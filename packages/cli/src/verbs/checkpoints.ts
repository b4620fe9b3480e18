import type { CheckpointResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { shortBytes, shortDuration, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

export const checkpointsVerb: Verb = {
  name: "checkpoints",
  usage: "[OPTIONS] SANDBOX",
  summary: "list the checkpoints of a sandbox, newest first, or delete some",
  options: [
    {
      name: "delete",
      value: "CHECKPOINT",
      isRepeatable: true,
      summary: "delete this one, by its id, the beginning of it, or its name, and list nothing",
    },
    jsonOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper checkpoints SANDBOX" },
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    const rows = await sandbox.checkpoints();
    const unwanted = arguments_.all("delete");
    if (unwanted.length === 0) {
      await showRows(arguments_, { columns: columnsAt(Date.now()), rows });
      return 0;
    }
    const { pick } = await import("../target/pick.ts");
    const targets = new Set(unwanted.map((text) => pick("checkpoint", text, rows).id));
    for (const id of targets) await sandbox.deleteCheckpoint(id);
    return 0;
  },
};

function columnsAt(nowMs: number): readonly Column<CheckpointResource>[] {
  return [
    { title: "ID", cell: ({ id }) => shortId(id) },
    { title: "NAME", cell: ({ name, isAutomatic }) => name ?? (isAutomatic ? "(automatic)" : "") },
    { title: "KEEPS", cell: ({ fidelity }) => (fidelity === "memory" ? "memory, files" : "files") },
    { title: "SIZE", align: "right", cell: ({ sizeBytes }) => shortBytes(sizeBytes) },
    { title: "UPLOADED", align: "right", cell: ({ uploadedBytes }) => shortBytes(uploadedBytes) },
    { title: "STOOD STILL", align: "right", cell: ({ pausedMs }) => `${pausedMs.toFixed(0)} ms` },
    { title: "AGE", align: "right", cell: ({ createdAt }) => shortDuration(nowMs - Date.parse(createdAt)) },
    {
      title: "ENDS IN",
      align: "right",
      cell: ({ expiresAt }) => (expiresAt === null ? "" : shortDuration(Date.parse(expiresAt) - nowMs)),
    },
  ];
}
