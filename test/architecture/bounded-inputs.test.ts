import {
  clientMessageSchema,
  type Route,
  resumeQuerySchema,
  routes,
  sessionRequestSchema,
  startProcessBodySchema,
} from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { tools } from "../../packages/mcp/src/tools/tool-table.ts";
import { unboundedParts } from "./unbounded-parts.ts";

/** Parts without an own limit, each with the reason why a caller cannot make them large. */
const exceptions: Readonly<Record<string, string>> = {
  "metadata.*": "any JSON: the whole of metadata is limited to 16,384 characters",
};

type Schema = NonNullable<Route["query"]>;

const inputs: readonly (readonly [string, Schema])[] = [
  ...Object.entries(routes as Readonly<Record<string, Route>>).flatMap(([id, { query, body }]) => [
    ...(query === undefined ? [] : [[`the query of ${id}`, query] as const]),
    ...(body?.kind === "json" ? [[`the body of ${id}`, body.schema as Schema] as const] : []),
  ]),
  ["messages to /v1/socket", clientMessageSchema as unknown as Schema],
  ["messages to /create and /attach", sessionRequestSchema as unknown as Schema],
  ["the query of /attach", resumeQuerySchema],
  ...tools.map(({ name, input }) => [`the MCP tool ${name}`, input as unknown as Schema] as const),
];

describe("every field that a caller sends has a maximum size", () => {
  it.each(inputs)("%s", (_, schema) => {
    const parts = unboundedParts(schema.toJSONSchema({ io: "input" }));
    expect(parts.filter((part) => !(part in exceptions))).toEqual([]);
  });
});

describe("the check of sizes", () => {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  const short = { type: "string", maxLength: 3 };
  const record = { type: "object", propertyNames: short, additionalProperties: flag, maxProperties: 3 };

  it.each<[string, object, string[]]>([
    ["a string", text, ["a"]],
    ["a pattern that repeats without a limit", { ...text, pattern: "^[a-z]+$" }, ["a"]],
    ["a pattern without an end", { ...text, pattern: "^[a-z]" }, ["a"]],
    ["an array", { type: "array", items: flag }, ["a"]],
    ["the items of an array", { type: "array", items: text, maxItems: 3 }, ["a[]"]],
    ["a record", { ...record, maxProperties: undefined }, ["a"]],
    ["the keys of a record", { ...record, propertyNames: text }, ["a.*"]],
    ["the values of a record", { ...record, additionalProperties: text }, ["a.*"]],
    ["one of several forms", { anyOf: [flag, text] }, ["a"]],
    ["one of several types", { type: ["boolean", "string"] }, ["a"]],
    ["anything", {}, ["a"]],
  ])("finds %s without a limit", (_, a, parts) => {
    expect(unboundedParts({ type: "object", properties: { a } })).toEqual(parts);
  });

  it.each<[string, object]>([
    ["a length", short],
    ["a bounded pattern", { ...text, pattern: "^[a-z*+]{1,3}\\+?$" }],
    ["a format", { ...text, format: "uuid" }],
    ["a choice", { ...text, enum: ["a"] }],
    ["a record with limits", record],
  ])("accepts %s", (_, schema) => {
    expect(unboundedParts(schema)).toEqual([]);
  });
});

describe("the environment of a process", () => {
  const accepts = (env: Record<string, string>) => startProcessBodySchema.safeParse({ env }).success;

  it("has at most 1,024 variables and 128 KiB in total", () => {
    const variables = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, ""]));
    expect([accepts(variables(1024)), accepts(variables(1025))]).toEqual([true, false]);
    expect([accepts({ A: "x".repeat(131_071) }), accepts({ A: "x".repeat(131_072) })]).toEqual([true, false]);
    expect(accepts({ A: "x".repeat(70_000), B: "x".repeat(70_000) })).toBe(false);
    expect(accepts({ A: "€".repeat(43_690) })).toBe(true);
    expect(accepts({ A: "€".repeat(43_691) })).toBe(false);
  });
});
