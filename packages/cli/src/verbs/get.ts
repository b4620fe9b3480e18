import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { showRows } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const getVerb: Verb = {
  name: "get",
  summary: "show the details of a sandbox",
  operands: ["SANDBOX"],
  options: [jsonOption],
  details:
    "Shows, for example, the addresses of published ports, the reason of a failure, and whether the sandbox answers, but not its token.",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    // The token gives access to the sandbox, and printed text is easily kept in a log.
    const { token: _, ...info } = sandbox.info;
    const shown = { ...info, healthy: await sandbox.isHealthy() };
    await showRows(arguments_, { columns, rows: Object.entries(shown), json: shown });
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
