import type { PortResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const portsVerb: Verb = {
  name: "ports",
  summary: "list the ports on which programs in a sandbox listen",
  operands: ["SANDBOX"],
  options: [jsonOption],
  learnMore: "docs/previews.md",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    await showRows(arguments_, { columns, rows: await sandbox.ports() });
  },
};

const columns: readonly Column<PortResource>[] = [
  { title: "PORT", align: "right", cell: ({ port }) => String(port) },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "PID", align: "right", cell: ({ pid }) => (pid === null ? "-" : String(pid)) },
  { title: "PROGRAM", cell: ({ program }) => program ?? "-" },
  { title: "ACCESS", cell: ({ isPublic }) => (isPublic ? "public" : "private") },
  { title: "URL", cell: ({ url }) => url },
];
