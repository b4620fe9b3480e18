import {
  clientMessageSchema,
  type Route,
  resumeQuerySchema,
  routes,
  sessionRequestSchema,
  startProcessBodySchema,
} from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { tools } from "../../packages/mcp/src/tools/tool-table.ts";
import { unboundedParts } from "./unbounded-parts.ts";

/** Parts without an own limit, each with the reason why a caller cannot make them large. */
const exceptions: Readonly<Record<string, string>> = {
  "metadata.*": "any JSON: the whole of metadata is limited to 16,384 characters",
};

const inputs: readonly (readonly [string, z.ZodType])[] = [
  ...Object.entries(routes as Readonly<Record<string, Route>>).flatMap(([id, { query, body }]) => [
    ...(query === undefined ? [] : [[`the query of ${id}`, query] as const]),
    ...(body?.kind === "json" ? [[`the body of ${id}`, body.schema] as const] : []),
  ]),
  ["messages to /v1/socket", clientMessageSchema],
  ["messages to /create and /attach", sessionRequestSchema],
  ["the query of /attach", resumeQuerySchema],
  ...tools.map(({ name, input }) => [`the MCP tool ${name}`, input as z.ZodType] as const),
];

describe("every field that a caller sends has a maximum size", () => {
  it.each(inputs)("%s", (_, schema) => {
    const parts = unboundedParts(z.toJSONSchema(schema, { io: "input" }));
    expect(parts.filter((part) => !(part in exceptions))).toEqual([]);
  });
});

describe("the check of sizes", () => {
  it.each<[string, z.ZodType, string[]]>([
    ["a string", z.strictObject({ a: z.string() }), ["a"]],
    ["a pattern that repeats without a limit", z.strictObject({ a: z.string().regex(/^[a-z]+$/) }), ["a"]],
    ["an array", z.strictObject({ a: z.array(z.boolean()).optional() }), ["a"]],
    ["the items of an array", z.strictObject({ a: z.array(z.string()).max(3) }), ["a[]"]],
    ["a record", z.strictObject({ a: z.record(z.string().max(3), z.boolean()) }), ["a"]],
    ["the keys of a record", z.record(z.string(), z.boolean()).meta({ maxProperties: 3 }), ["*"]],
    ["the values of a record", z.record(z.string().max(3), z.string()).meta({ maxProperties: 3 }), ["*"]],
    ["one of several forms", z.strictObject({ a: z.union([z.boolean(), z.string()]) }), ["a"]],
    ["anything", z.strictObject({ a: z.unknown() }), ["a"]],
  ])("finds %s without a limit", (_, schema, parts) => {
    expect(unboundedParts(z.toJSONSchema(schema, { io: "input" }))).toEqual(parts);
  });

  it("accepts lengths, bounded patterns and formats", () => {
    const text = z.union([z.string().max(3), z.string().regex(/^[a-z*+]{1,3}\+?$/), z.uuid(), z.enum(["a"])]);
    expect(unboundedParts(z.toJSONSchema(z.array(text).max(3), { io: "input" }))).toEqual([]);
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
