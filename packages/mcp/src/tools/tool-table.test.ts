import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Tool } from "../tool/tool.ts";
import { tools } from "./tool-table.ts";

const document = readFileSync(new URL("../../../../docs/mcp.md", import.meta.url), "utf8");

/** The row of a tool in the document: required parameters first. */
function rowOf({ name, description, input, annotations }: Tool): string {
  const fields = Object.entries(input.shape).filter(([field]) => field !== "sandbox_id");
  const isOptional = ([, schema]: (typeof fields)[number]) => (schema as { isOptional(): boolean }).isOptional();
  const listed = [
    ...fields.filter((field) => !isOptional(field)).map(([field]) => `\`${field}\``),
    ...fields.filter(isOptional).map(([field]) => `\`${field}?\``),
  ];
  const effect = annotations.readOnlyHint ? "reads" : annotations.destructiveHint ? "writes, may destroy" : "writes";
  const sentence = description.slice(0, description.search(/\.(\s|$)/));
  return `| \`${name}\` | ${listed.join(", ") || "–"} | ${effect} | ${sentence} |`;
}

describe("docs/mcp.md", () => {
  it("lists every tool with its parameters and effect", () => {
    const rows = document.split("\n").filter((line) => /^\| `[a-z_]+` \|.*\| (reads|writes)/.test(line));
    expect(rows).toEqual(tools.map(rowOf));
  });
});
