import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { shortBytes, shortDuration } from "./format.ts";
import { type Column, table } from "./table.ts";

interface Row {
  readonly name: string;
  readonly size: number;
}
const columns: readonly Column<Row>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "SIZE", align: "right", cell: ({ size }) => String(size) },
  { title: "WHAT", cell: ({ name }) => `${name} again` },
];
const show = (rows: readonly Row[], width?: number) => stripVTControlCharacters(table(columns, rows, width));

describe("a table", () => {
  it("has columns as wide as their longest cell, with numbers aligned right", () => {
    const rows = [
      { name: "a", size: 12345 },
      { name: "longer", size: 7 },
    ];
    expect(show(rows)).toBe("NAME     SIZE  WHAT\na       12345  a again\nlonger      7  longer again\n");
  });

  it("is cut at the edge of the terminal", () => {
    expect(show([{ name: "n", size: 1 }], 16)).toBe("NAME  SIZE  WHAT\nn        1  n a…\n");
  });

  it("shows only the titles when there are no rows", () => {
    expect(show([])).toBe("NAME  SIZE  WHAT\n");
  });

  it("passes no escape sequence of a cell to the terminal", () => {
    const shown = table(columns, [{ name: "\u001b]0;title\u0007\nroot", size: 1 }]);
    for (const text of ["\u001b]", "\u0007", "\nroot"]) expect(shown).not.toContain(text);
  });
});

describe("an amount", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "0.98 KiB"],
    [1536, "1.50 KiB"],
    [15 * 1024 ** 2, "15.0 MiB"],
    [256 * 1024 ** 2, "256 MiB"],
    [3 * 1024 ** 4, "3.00 TiB"],
  ])("of %i bytes is %s", (bytes, text) => {
    expect(shortBytes(bytes)).toBe(text);
  });

  it.each([
    [10, "0s"],
    [59_999, "59s"],
    [3_600_000, "1h"],
    [200_000_000, "2d"],
  ])("of %i ms is %s", (durationMs, text) => {
    expect(shortDuration(durationMs)).toBe(text);
  });
});
