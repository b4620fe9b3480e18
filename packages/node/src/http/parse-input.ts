import { SandboxError } from "@sandpiper/core";
import type { z } from "zod";

/** Checks a caller's input. The error names each invalid field. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  what: "body" | "query",
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  const texts = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  throw new SandboxError(what === "body" ? "invalid_body" : "invalid_query", {
    message: `the request's ${what} is invalid: ${texts.join("; ")}`,
    hint: "GET /openapi.json describes all operations",
    details: { issues },
  });
}
