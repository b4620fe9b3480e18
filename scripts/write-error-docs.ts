import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatConfigDocs } from "./docs/config-docs.ts";
import { formatErrorDocs } from "./docs/error-docs.ts";

const documents = { "docs/errors.md": formatErrorDocs, "docs/configuration.md": formatConfigDocs };

for (const [path, format] of Object.entries(documents)) {
  writeFileSync(join(import.meta.dirname, "..", path), format());
  console.log(`Wrote ${path}.`);
}
