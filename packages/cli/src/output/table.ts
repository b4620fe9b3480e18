import { styleText } from "node:util";
import { plainText } from "./format.ts";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** For numbers. */
  readonly align?: "right";
}

/** Rows for people: columns as wide as their longest cell, lines cut at the terminal's edge. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width = Infinity): string {
  const cells = rows.map((row) => columns.map(({ cell }) => plainText(cell(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((line) => (line[index] as string).length)),
  );
  const format = (line: readonly string[]) => {
    const padded = line.map((text, index) =>
      columns[index]?.align === "right" ? text.padStart(widths[index] as number) : text.padEnd(widths[index] as number),
    );
    const whole = padded.join("  ").trimEnd();
    return whole.length > width ? `${whole.slice(0, width - 1)}…` : whole;
  };
  const header = styleText("dim", format(columns.map(({ title }) => title)));
  return `${[header, ...cells.map(format)].join("\n")}\n`;
}
