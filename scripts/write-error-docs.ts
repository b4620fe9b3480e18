import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatErrorDocs } from "./docs/error-docs.ts";

writeFileSync(join(import.meta.dirname, "../docs/errors.md"), formatErrorDocs());
console.log("Wrote docs/errors.md.");
