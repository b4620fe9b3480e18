import type { Verb } from "../command/verb.ts";
import { jsonOption, printJson, showRows, wantsJson } from "../output/show.ts";

export const getVerb: Verb = {
  name: "get",
  usage: "[OPTIONS] SANDBOX",
  summary: "show all that the node knows of a sandbox",
  options: [jsonOption],
  operands: { min: 1, max: 1, example: "sandpiper get SANDBOX" },
  details: "Such as where its published ports are reached, and why it failed. Its token is not shown.",
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { info } = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    // A token opens its sandbox; what is shown is too easily kept somewhere.
    const { token: _, ...shown } = info;
    if (wantsJson(arguments_)) await printJson(shown);
    else await showRows(arguments_, { columns, rows: Object.entries(shown) });
    return 0;
  },
};

const columns = [
  { title: "FIELD", cell: ([field]: readonly [string, unknown]) => field },
  { title: "VALUE", cell: ([, value]: readonly [string, unknown]) => textOf(value) },
];

function textOf(value: unknown): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
