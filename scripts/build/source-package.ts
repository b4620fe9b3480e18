import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** A package of this repository, as its folder has it. */
export interface SourcePackage {
  readonly directory: string;
  /** Name of the folder. */
  readonly folder: string;
  /** Its exports name source files; those that only this repository's own tests use are left out. */
  readonly manifest: Manifest;
}

/** They import the test runner, which a program that uses the package does not have. */
const unpublished: Readonly<Record<string, readonly string[]>> = { "@sandpiper/core": ["./testing"] };

export function readPackage(directory: string): SourcePackage {
  const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Manifest;
  const left = Object.entries(manifest.exports ?? {}).filter(([path]) => !unpublished[manifest.name]?.includes(path));
  const exports = left.length === 0 ? {} : { exports: Object.fromEntries(left) };
  const { exports: _, ...rest } = manifest;
  return { directory, folder: basename(directory), manifest: { ...rest, ...exports } as Manifest };
}

/** Absolute paths of the source files that are published: all but tests, and what only the tests of this repository use. */
export function publishedFiles({ directory, manifest }: SourcePackage): string[] {
  const published = Object.values(manifest.exports ?? {}).map((path) => dirname(join(directory, path)));
  return globSync("src/**/*.{ts,mjs}", { cwd: directory })
    .map((path) => join(directory, path))
    .filter((path) => !/\.test(-d)?\.ts$/.test(path))
    .filter((path) => !path.includes("/testing/") || published.includes(dirname(path)));
}
