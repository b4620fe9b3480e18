import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { parseInput } from "./parse-input.ts";

/** Reads the query of a URL by a schema: what is unknown, or given twice where once is meant, is refused. */
export function readQuery(schema: z.ZodObject, url: string): unknown {
  const at = url.indexOf("?");
  const given = new URLSearchParams(at === -1 ? "" : url.slice(at + 1));
  const input: Record<string, string | string[]> = {};
  for (const key of new Set(given.keys())) {
    const values = given.getAll(key);
    const [first = ""] = values;
    if (isList(schema, key)) input[key] = values;
    else if (values.length === 1) input[key] = first;
    else throw givenTwice(key);
  }
  return parseInput(schema, input, "query");
}

/** An operation without a query takes none. */
export const noQuerySchema = z.strictObject({});

function isList(schema: z.ZodObject, key: string): boolean {
  if (!Object.hasOwn(schema.shape, key)) return false;
  const field: unknown = schema.shape[key];
  return (field instanceof z.ZodOptional ? field.unwrap() : field) instanceof z.ZodArray;
}

function givenTwice(key: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_query",
    message: `${JSON.stringify(key.slice(0, 128))} stands more than once in the query`,
    hint: "give it once",
  });
}
