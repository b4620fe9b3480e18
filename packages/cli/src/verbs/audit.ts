import { openAsBlob } from "node:fs";
import type { AuditEntry, AuditVerification } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { parseNumber } from "../options/values.ts";
import { age } from "../output/format.ts";
import { showResult, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

const listAudit: Verb = {
  name: "audit ls",
  summary: "list changes and refused requests",
  options: [
    { name: "after", value: "ID", summary: "list only entries after ID" },
    { name: "limit", value: "N", default: "100", summary: "list at most N entries, up to 1000" },
    jsonOption,
  ],
  async run(arguments_) {
    const after = parseNumber(arguments_, "after", { example: 1200 });
    const limit = parseNumber(arguments_, "limit", { example: 100 });
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.audit.list({ after, limit }) });
  },
};

const verifyAudit: Verb = {
  name: "audit verify",
  summary: "verify that no entry of the audit log was removed or changed",
  options: [
    {
      name: "file",
      value: "FILE",
      isRepeatable: true,
      completes: "path",
      summary: "verify files that the node shipped instead; name rotated files too, oldest first",
    },
    { name: "json", summary: "print the result as a JSON object" },
  ],
  details:
    "Each entry has a code that depends on the entry before it and on the node's secret. Only the node that wrote a file\n" +
    "can verify it.",
  exitCodes: [
    ["0", "every entry is present and unchanged"],
    ["1", "an entry is missing or was changed; the output names its place"],
  ],
  examples: ["sandpiper audit verify", "sandpiper audit verify --file audit.jsonl.1 --file audit.jsonl"],
  learnMore: "docs/observability.md",
  async run(arguments_) {
    const files = arguments_.all("file");
    const client = await requireNode();
    const result =
      files.length === 0
        ? await client.audit.verify()
        : await client.audit.verifyFile(new Blob(await Promise.all(files.map((file) => openAsBlob(file)))));
    await showResult(arguments_, { json: result, lines: linesOf(result) });
    return result.isIntact ? 0 : 1;
  },
};

export const auditVerb: Verb = {
  name: "audit",
  summary: "read and verify the audit log",
  options: [],
  actions: [listAudit, verifyAudit],
};

const columns: readonly Column<AuditEntry>[] = [
  { title: "ID", align: "right", cell: ({ id }) => String(id) },
  { title: "AGE", align: "right", cell: ({ at }) => age(at) },
  { title: "ACTOR", cell: ({ actor }) => actor ?? "-" },
  { title: "TENANT", cell: ({ tenant }) => tenant ?? "-" },
  { title: "OPERATION", cell: operationOf },
  { title: "STATUS", align: "right", cell: ({ status }) => String(status) },
  { title: "SANDBOX", cell: ({ sandboxId }) => sandboxId ?? "-" },
];

function operationOf({ operation, notRecorded }: AuditEntry): string {
  if (notRecorded === undefined) return operation;
  return `${notRecorded.requests} refused requests not recorded, from ${notRecorded.addresses} addresses`;
}

function linesOf({ isIntact, entries, rotated, firstId, lastId, findings }: AuditVerification): readonly string[] {
  const range = firstId === null ? "no entries" : `${entries} entries from ${firstId} to ${lastId}`;
  const earlier = rotated === 0 ? "" : `; the node rotated ${rotated} entries out`;
  if (isIntact) return [`intact: ${range}${earlier}`];
  const place = (line: number | null) => (line === null ? "" : `line ${line}: `);
  return [`NOT intact: ${range}${earlier}`, ...findings.map(({ line, message }) => `  ${place(line)}${message}`)];
}
