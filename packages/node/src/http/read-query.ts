import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { parseInput } from "./parse-input.ts";

/** Reads the query of a URL by a schema: what is unknown, or given twice where once is meant, is refused. */
export function readQuery(schema: z.ZodObject, url: string): unknown {
  const at = url.indexOf("?");
  const text = at === -1 ? "" : url.slice(at + 1);
  requireUtf8(text);
  const given = new URLSearchParams(text);
  // Without a prototype, so that no name in a query means anything but itself.
  const input: Record<string, string | string[]> = Object.create(null);
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

/** What is no UTF-8 would be taken for another name, with marks where the wrong bytes were. */
function requireUtf8(query: string): void {
  try {
    if (query.includes("%")) decodeURIComponent(query);
  } catch {
    throw new SandboxError("invalid_argument", {
      reason: "invalid_query",
      message: "the query holds a percent-encoding that is no UTF-8",
      hint: "encode it with encodeURIComponent; files with other names can be reached from a command",
    });
  }
}

function givenTwice(key: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_query",
    message: `${JSON.stringify(key.slice(0, 128))} stands more than once in the query`,
    hint: "give it once",
  });
}
