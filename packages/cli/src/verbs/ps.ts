import type { ProcessResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { shortDuration, shortId } from "../output/amounts.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

export const psVerb: Verb = {
  name: "ps",
  usage: "[OPTIONS] SANDBOX",
  summary: "list the processes of a sandbox that were started through the node",
  options: [jsonOption],
  operands: { min: 1, max: 1, example: "sandpiper ps SANDBOX" },
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    await showRows(arguments_, { columns: columnsAt(Date.now()), rows: await sandbox.processes() });
    return 0;
  },
};

function columnsAt(nowMs: number): readonly Column<ProcessResource>[] {
  return [
    { title: "ID", cell: ({ id }) => shortId(id) },
    { title: "PID", align: "right", cell: ({ pid }) => String(pid) },
    { title: "STATE", cell: stateOf },
    { title: "USER", cell: ({ user }) => user },
    { title: "AGE", align: "right", cell: ({ startedAt }) => shortDuration(nowMs - Date.parse(startedAt)) },
    { title: "COMMAND", cell: ({ argv }) => argv.join(" ") },
  ];
}

function stateOf({ isRunning, signal, exitCode }: ProcessResource): string {
  if (isRunning) return "running";
  return signal ?? `exit ${exitCode}`;
}
