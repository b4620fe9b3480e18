import { posix } from "node:path";
import type { SourceFile } from "../../test/architecture/source-files.ts";

/** A test whose needs its imports do not show has a comment such as `// Not a unit test: it needs root.` */
const MARKER = /^\/\/ Not a unit test: \S/m;
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;
const IMPORT =
  /^(?:import|export)\s+(type\s)?([^"';]*?)\s*from\s*["']([^"'\n]+)["']|\bimport\s*\(?\s*["']([^"'\n]+)["']/gm;

interface Import {
  /** The names between the braces. */
  readonly names: string;
  readonly from: string;
}

/**
 * The test files that start no program: neither the test nor any file that it reaches through relative imports imports
 * `node:child_process`, and no test code takes a real provider. Below `test/`, only the checks of the source code qualify.
 */
export function listUnitTests(files: readonly SourceFile[]): readonly string[] {
  const sources = new Map(files.map(({ path, text }) => [path, text]));
  const imports = new Map(files.map(({ path, text }) => [path, importsOf(text)]));
  const isUnitTest = (path: string) => {
    if (/^test\/(?!architecture\/)/.test(path) || MARKER.test(sources.get(path) ?? "")) return false;
    const reached = new Set([path]);
    for (const file of reached) {
      for (const { names, from } of imports.get(file) ?? []) {
        if (from === "node:child_process" || (isTestCode(file) && usesEngine(from, names))) return false;
        if (from.startsWith(".")) reached.add(posix.join(posix.dirname(file), from));
      }
    }
    return true;
  };
  return [...sources.keys()].filter((path) => path.endsWith(".test.ts") && isUnitTest(path));
}

function importsOf(text: string): readonly Import[] {
  return [...text.replace(COMMENT, "").matchAll(IMPORT)].flatMap(([, type, names = "", from, other = ""]) =>
    type === undefined ? [{ names, from: from ?? other }] : [],
  );
}

function isTestCode(path: string): boolean {
  return path.endsWith(".test.ts") || path.includes("/testing/");
}

/** Whether a test takes a real provider or a whole node. Code under test may name them: it starts them only on request. */
function usesEngine(module: string, names: string): boolean {
  if (module === "@sandpiper/providers") return !/^\{\s*(?:Mock\w+,?\s*|type \w+,?\s*)*\}$/.test(names);
  return module === "@sandpiper/node" || /\bcreateProvider\b/.test(names);
}
