import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export interface SourceFile {
  /** From the root of the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

export const repoDirectory = join(import.meta.dirname, "../..");

const skippedDirectories = /(^|\/)(node_modules|dist|\.git|coverage)$|^agent\/target$/;
/** Made by programs, not written by people. */
const generated = /^package-lock\.json$|^agent\/Cargo\.lock$|^packages\/protocol\/(snapshots|vectors)\//;
const written = /\.(ts|tsx|mjs|rs|sh|md|json|toml|yml|yaml|py|c)$|^\.ci\/run$/;

/** Every file of the repository that is not generated. */
export function readSourceFiles(): readonly SourceFile[] {
  return listFiles(repoDirectory)
    .map((path) => relative(repoDirectory, path))
    .filter((path) => written.test(path) && !generated.test(path))
    .map((path) => ({ path, text: readFileSync(join(repoDirectory, path), "utf8") }));
}

function listFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skippedDirectories.test(relative(repoDirectory, path)) ? [] : listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}
