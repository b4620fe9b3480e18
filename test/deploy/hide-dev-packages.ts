import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./dockerfile.ts";

const MODULES = "node_modules/";

/** Creates an overlay's layer that hides the packages that `npm prune --omit=dev` removes from node_modules. */
export function hideDevPackages(layer: string): string {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const isDev = (path: string) => path.startsWith(MODULES) && lock.packages[path]?.dev === true;
  const paths = Object.keys(lock.packages).filter(isDev);
  hide(layer, outermost(paths.map((path) => path.slice(MODULES.length))));
  return layer;
}

/** Without paths inside other ones of the list. */
function outermost(paths: readonly string[]): string[] {
  const all = new Set(paths);
  return paths.filter((path) => {
    for (let above = dirname(path); above !== "."; above = dirname(above)) if (all.has(above)) return false;
    return true;
  });
}

/** In a layer of an overlay, a device 0:0 hides the file of that name in the layers below. */
function hide(layer: string, paths: readonly string[]): void {
  for (const path of new Set(paths.map(dirname))) mkdirSync(join(layer, path), { recursive: true });
  execFileSync("sh", ["-c", 'for path; do mknod "$path" c 0 0 || exit 1; done', "sh", ...paths], { cwd: layer });
}
