import type { Arguments } from "../command/arguments.ts";
import { print, printJson } from "./print.ts";
import { type Column, table } from "./table.ts";

/** People get tables; programs get JSON. */
export function wantsJson(arguments_: Arguments): boolean {
  return arguments_.has("json") || process.stdout.isTTY !== true;
}

export interface ShownRows<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** By default the array of rows. */
  readonly json?: unknown;
}

/** A table on a terminal, otherwise JSON. */
export async function showRows<Row>(arguments_: Arguments, { columns, rows, json = rows }: ShownRows<Row>) {
  if (wantsJson(arguments_)) return printJson(json);
  // Some terminals report no width.
  await print(table(columns, rows, process.stdout.columns || Number.POSITIVE_INFINITY));
}

/** Lines for scripts, or with `--json` the whole value. */
export async function showResult(
  arguments_: Arguments,
  { json, lines }: { readonly json: unknown; readonly lines: readonly string[] },
): Promise<void> {
  if (arguments_.has("json")) await printJson(json);
  else await print(lines.map((line) => `${line}\n`).join(""));
}
