// Adds to package-lock.json the optional packages that npm left out. A registry mirror may lack packages for other
// platforms; npm then writes a lock file without them, and `npm ci` refuses that lock file on every platform.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repoDirectory } from "./setup/directories.mjs";
import { missingOptionalPackages, platformOf } from "./setup/lock-file.mjs";

const path = join(repoDirectory, "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8"));
const missing = missingOptionalPackages(lock.packages);
for (const { name, version, dev } of missing) {
  lock.packages[`node_modules/${name}`] = { version, ...(dev ? { dev } : {}), optional: true, ...platformOf(name) };
}
const byName = Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(byName) }, null, 2)}\n`);
console.log(`Added ${missing.length} optional packages of other platforms to package-lock.json.`);
