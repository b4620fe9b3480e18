import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "../run-check.ts";
import { publishedFiles, type SourcePackage } from "./source-package.ts";

interface CompileOptions {
  readonly repo: string;
  readonly dist: string;
  readonly packages: readonly SourcePackage[];
}

/** What to run for the packages' JavaScript and declarations to be in dist/compiled/<package>/src. */
export function compileSteps({ repo, dist, packages }: CompileOptions): Check[] {
  const project = join(dist, "tsconfig.json");
  const compilerOptions = { outDir: join(dist, "compiled"), typeRoots: [join(repo, "node_modules/@types")] };
  // All of them and not only those that exports name: tsc may leave out what it first meets as the file of a dependency.
  const files = packages.flatMap(publishedFiles);
  writeFileSync(project, JSON.stringify({ extends: join(repo, "tsconfig.build.json"), compilerOptions, files }));
  const tsc = join(repo, "node_modules/.bin/tsc");
  return [
    { name: "tsc for Node.js 20 and browsers", cwd: repo, argv: [tsc, "-p", join(repo, "tsconfig.portable.json")] },
    { name: "tsc", cwd: repo, argv: [tsc, "-p", project] },
  ];
}
