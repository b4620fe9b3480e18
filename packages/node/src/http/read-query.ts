import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { parseInput } from "./parse-input.ts";

/** Checks the query of a URL. Refuses unknown parameters, and repeated ones unless they are lists. */
export function readQuery(schema: z.ZodObject, url: string): unknown {
  const at = url.indexOf("?");
  const text = at === -1 ? "" : url.slice(at + 1);
  requireUtf8(text);
  const query = new URLSearchParams(text);
  // Without a prototype, so that a parameter named __proto__ is harmless.
  const input: Record<string, string | string[]> = Object.create(null);
  for (const key of new Set(query.keys())) {
    const values = query.getAll(key);
    const [first = ""] = values;
    if (isList(schema, key)) input[key] = values;
    else if (values.length === 1) input[key] = first;
    else throw repeated(key);
  }
  return parseInput(schema, input, "query");
}

export const noQuerySchema = z.strictObject({});

function isList(schema: z.ZodObject, key: string): boolean {
  if (!Object.hasOwn(schema.shape, key)) return false;
  const field: unknown = schema.shape[key];
  return (field instanceof z.ZodOptional ? field.unwrap() : field) instanceof z.ZodArray;
}

/** URLSearchParams would replace invalid bytes, and so read another name. */
function requireUtf8(query: string): void {
  try {
    if (query.includes("%")) decodeURIComponent(query);
  } catch {
    throw new SandboxError("invalid_query", {
      message: "the query contains percent-encoded bytes that are not valid UTF-8",
      hint: "encode it with encodeURIComponent; use a command for files whose names are not UTF-8",
    });
  }
}

function repeated(key: string): SandboxError {
  return new SandboxError("invalid_query", {
    message: `the query parameter ${JSON.stringify(key.slice(0, 128))} occurs more than once`,
    hint: "send it once",
  });
}
