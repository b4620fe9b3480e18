import { SandboxError } from "@sandpiper/core";
import type { z } from "zod";

/** Bounds the answer to a body with many invalid or long fields. */
const MAX_ISSUES = 20;
const MAX_ISSUE_CHARS = 500;

/** Checks a caller's input. The error names the first invalid fields. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  what: "body" | "query",
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, MAX_ISSUES).map(({ path, message }) => ({
    path: path.join(".").slice(0, MAX_ISSUE_CHARS),
    message: message.slice(0, MAX_ISSUE_CHARS),
  }));
  const texts = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  throw new SandboxError(what === "body" ? "invalid_body" : "invalid_query", {
    message: `the request's ${what} is invalid: ${texts.join("; ")}`,
    hint: "GET /openapi.json describes all operations",
    details: { issues },
  });
}
