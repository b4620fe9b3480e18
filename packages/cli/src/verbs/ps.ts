import type { ProcessResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age, shortId } from "../output/format.ts";
import { showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const psVerb: Verb = {
  name: "ps",
  summary: "list the processes of a sandbox",
  operands: ["SANDBOX"],
  options: [jsonOption],
  details: "Lists the processes that were started through the node, but not their children.",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    await showRows(arguments_, { columns, rows: await sandbox.processes() });
  },
};

const columns: readonly Column<ProcessResource>[] = [
  { title: "ID", cell: ({ id }) => shortId(id) },
  { title: "PID", align: "right", cell: ({ pid }) => String(pid) },
  { title: "STATE", cell: stateOf },
  { title: "USER", cell: ({ user }) => user },
  { title: "AGE", align: "right", cell: ({ startedAt }) => age(startedAt) },
  { title: "COMMAND", cell: ({ argv }) => argv.join(" ") },
];

function stateOf({ isRunning, signal, exitCode }: ProcessResource): string {
  if (isRunning) return "running";
  return signal ?? `exit ${exitCode}`;
}
