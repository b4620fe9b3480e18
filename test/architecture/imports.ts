import { posix } from "node:path";
import { readSourceFiles, type SourceFile } from "./source-files.ts";

export interface Import {
  /** The file that imports. */
  readonly from: string;
  /** A path from the root of the repository for relative imports; otherwise the package or `node:` name as written. */
  readonly to: string;
}

const specifiers = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"'\n]+)["']/g;

/** Every import of every TypeScript and JavaScript file. */
export function readImports(): readonly Import[] {
  return readSourceFiles()
    .filter(({ path }) => /\.(ts|tsx|mjs)$/.test(path))
    .flatMap(importsOf);
}

function importsOf({ path, text }: SourceFile): Import[] {
  return [...withoutComments(text).matchAll(specifiers)].map(([, specifier = ""]) => {
    const isRelative = specifier.startsWith(".");
    return { from: path, to: isRelative ? posix.join(posix.dirname(path), specifier) : specifier };
  });
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

export function isTest(path: string): boolean {
  return /\.test(-d)?\.ts$/.test(path);
}

/** The package that an import names. */
export function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}
