import type { CheckpointResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age, shortBytes, shortId, timeUntil } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { firstSandbox } from "../target/find-sandbox.ts";
import { pick } from "../target/pick.ts";

export const checkpointsVerb: Verb = {
  name: "checkpoints",
  summary: "list the checkpoints of a sandbox, newest first, or delete some",
  operands: ["SANDBOX"],
  options: [
    {
      name: "delete",
      value: "CHECKPOINT",
      isRepeatable: true,
      summary: "delete this checkpoint and list nothing",
    },
    jsonOption,
  ],
  details: "CHECKPOINT is an ID, the beginning of an ID, or a name.",
  examples: ["sandpiper checkpoints build", "sandpiper checkpoints build --delete before-tests"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    const rows = await sandbox.checkpoints();
    const unwanted = arguments_.all("delete");
    if (unwanted.length === 0) await showRows(arguments_, { columns, rows });
    const targets = new Set(unwanted.map((text) => pick("checkpoint", text, rows).id));
    for (const id of targets) await sandbox.deleteCheckpoint(id);
  },
};

const columns: readonly Column<CheckpointResource>[] = [
  { title: "ID", cell: ({ id }) => shortId(id) },
  { title: "NAME", cell: ({ name, isAutomatic }) => name ?? (isAutomatic ? "(automatic)" : "") },
  { title: "CONTENTS", cell: ({ fidelity }) => (fidelity === "memory" ? "memory, files" : "files") },
  { title: "SIZE", align: "right", cell: ({ sizeBytes }) => shortBytes(sizeBytes) },
  { title: "UPLOADED", align: "right", cell: ({ uploadedBytes }) => shortBytes(uploadedBytes) },
  { title: "PAUSED FOR", align: "right", cell: ({ pausedMs }) => `${pausedMs.toFixed(0)} ms` },
  { title: "AGE", align: "right", cell: ({ createdAt }) => age(createdAt) },
  { title: "EXPIRES IN", align: "right", cell: ({ expiresAt }) => timeUntil(expiresAt) },
];
