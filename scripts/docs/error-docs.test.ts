import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { formatErrorDocs } from "./error-docs.ts";

it("docs/errors.md says what the error table says", () => {
  const written = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  expect(written, "docs/errors.md is out of date: run `npm run docs`").toBe(formatErrorDocs());
});
