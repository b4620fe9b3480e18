import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Manifest, SourcePackage } from "./source-package.ts";

/** Writes what is published of a package to dist/npm/<folder>, and returns that path. */
export function stagePackage(
  { directory, folder, manifest }: SourcePackage,
  { repo, dist }: { readonly repo: string; readonly dist: string },
): string {
  const stage = join(dist, "npm", folder);
  mkdirSync(stage, { recursive: true });
  cpSync(join(dist, "compiled", folder, "src"), join(stage, "dist"), { recursive: true });
  rewriteDeclarations(join(stage, "dist"));
  if (existsSync(join(directory, "bin"))) cpSync(join(directory, "bin"), join(stage, "bin"), { recursive: true });
  cpSync(join(directory, "README.md"), join(stage, "README.md"));
  cpSync(join(repo, "LICENSE"), join(stage, "LICENSE"));
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(publishedManifest(manifest), null, 2)}\n`);
  return stage;
}

/** The name that npm gives a package's tarball. */
export function packedName({ manifest: { name, version } }: Pick<SourcePackage, "manifest">): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

function publishedManifest(manifest: Manifest): object {
  const { private: _, devDependencies: __, exports, ...rest } = manifest;
  const paths = Object.entries(exports ?? {}).map(([path, source]) => [path, publishedPaths(source)] as const);
  if (paths.length === 0) return { ...rest, files: ["bin", "dist"] };
  return { ...rest, exports: { ...Object.fromEntries(paths), "./package.json": "./package.json" }, files: ["dist"] };
}

function publishedPaths(source: string): { types: string; default: string } {
  const path = source.replace(/^\.\/src\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${path}.d.ts`, default: `${path}.js` };
}

/**
 * tsc rewrites the extensions of imports in JavaScript alone, and leaves it to each program that uses a package to have the
 * types of `await using`.
 */
function rewriteDeclarations(directory: string): void {
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    if (!/\.d\.m?ts$/.test(name)) continue;
    const path = join(directory, name);
    const text = readFileSync(path, "utf8");
    const isDisposable = /\bAsyncDisposable\b|\bSymbol\.(asyncDispose|dispose)\b/.test(text);
    const head = isDisposable ? '/// <reference lib="esnext.disposable" />\n' : "";
    writeFileSync(path, head + text.replace(/((?:\bfrom |\bimport\()"\.{1,2}\/[^"\n]+)\.ts"/g, '$1.js"'));
  }
}
