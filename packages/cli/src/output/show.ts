import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/option.ts";
import { print } from "./print.ts";
import type { Column } from "./table.ts";

export const jsonOption: Option = { name: "json", summary: "print JSON, as is done anyway where there is no terminal" };
export const followOption: Option = { name: "follow", short: "f", summary: "go on as more comes" };

/** People get tables; programs get JSON. */
export function wantsJson(arguments_: Arguments): boolean {
  return arguments_.has("json") || process.stdout.isTTY !== true;
}

export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value)}\n`);
}

export interface ShownRows<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
}

/** A table on a terminal, otherwise one JSON array. */
export async function showRows<Row>(arguments_: Arguments, { columns, rows }: ShownRows<Row>): Promise<void> {
  if (wantsJson(arguments_)) return printJson(rows);
  const { table } = await import("./table.ts");
  // A terminal need not know its own width.
  await print(table(columns, rows, process.stdout.columns || Number.POSITIVE_INFINITY));
}
