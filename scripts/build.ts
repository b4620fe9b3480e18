// `npm run build` compiles the packages and packs them: dist/npm/<package>/ is what a registry would get, dist/*.tgz are
// the same as files that `npm install` takes. In the clone everything runs from source, without a build.
// `npm run build -- DIR` writes to another directory, which must be empty.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { publishedFiles, readPackage, type SourcePackage } from "./build/source-package.ts";
import { packedName, stagePackage } from "./build/stage-package.ts";
import { type Check, runCheck } from "./run-check.ts";

const repo = join(import.meta.dirname, "..");
const given = process.argv[2];
const dist = resolve(given ?? join(repo, "dist"));
const bin = join(repo, "node_modules/.bin");
const node = process.execPath;

async function build(): Promise<void> {
  if (given === undefined) rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  if (readdirSync(dist).length > 0) throw new Error(`${dist} is not empty: name an empty directory`);
  const packages = readdirSync(join(repo, "packages")).map((folder) => readPackage(join(repo, "packages", folder)));
  for (const step of compileSteps(packages)) await run(step);
  const staged = packages.map((one) => stagePackage(one, { repo, dist }));
  await run({ name: "npm pack", cwd: dist, argv: ["npm", "pack", "--silent", "--pack-destination", dist, ...staged] });
  for (const one of packages) for (const check of checksOf(one)) await run(check);
  for (const one of packages) console.log(`  ${relative(process.cwd(), join(dist, packedName(one)))}`);
}

/** What to run for the packages' JavaScript and declarations to be in dist/compiled/<package>/src. */
function compileSteps(packages: readonly SourcePackage[]): Check[] {
  const project = join(dist, "tsconfig.json");
  const compilerOptions = { outDir: join(dist, "compiled"), typeRoots: [join(repo, "node_modules/@types")] };
  // All of them and not only those that exports name: tsc may leave out what it first meets as the file of a dependency.
  const files = packages.flatMap(publishedFiles);
  writeFileSync(project, JSON.stringify({ extends: join(repo, "tsconfig.build.json"), compilerOptions, files }));
  const tsc = join(bin, "tsc");
  return [
    { name: "tsc for Node.js 20 and browsers", cwd: repo, argv: [tsc, "-p", join(repo, "tsconfig.portable.json")] },
    { name: "tsc", cwd: repo, argv: [tsc, "-p", project] },
  ];
}

/** What publint and attw find wrong with a package before its users do. */
function checksOf({ manifest, folder }: SourcePackage): Check[] {
  const { name } = manifest;
  const tarball = join(dist, packedName({ manifest }));
  const attw = [node, join(bin, "attw"), "--profile", "esm-only", "--no-emoji", "--no-color", tarball] as const;
  const publint = [node, join(bin, "publint"), "run", "--strict", "--pack=false", join(dist, "npm", folder)] as const;
  return [
    { name: `publint ${name}`, cwd: repo, argv: publint },
    // A package that is only a program has no types to resolve.
    ...(manifest.exports === undefined ? [] : [{ name: `attw ${name}`, cwd: repo, argv: attw }]),
  ];
}

async function run(step: Check): Promise<void> {
  if (!(await runCheck(step))) process.exit(1);
}

await build();
