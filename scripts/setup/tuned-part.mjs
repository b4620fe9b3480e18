import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hasDebianPackages, publish } from "./debian-packages.mjs";
import { recipeDigest } from "./image-recipe.mjs";
import { withLock } from "./lock.mjs";
import { repoDirectory } from "./repo-directory.mjs";
import { tellComplete, tellWaiting } from "./report.mjs";

/**
 * Something that is built of Debian's sources for this machine, and kept under the name of its recipe.
 * @typedef {object} TunedPart
 * @property {string} name of the part, of its recipe's directory, and of its directory in the cache
 * @property {string} file that a whole one has
 * @property {string} what it is, in a word or two
 * @property {(make: (draft: string) => void) => Promise<void>} build calls `make` with a directory that has all of it
 */

/** @param {string} name */
export function recipeDirectory(name) {
  return join(repoDirectory, "images", name);
}

/** @param {TunedPart} part @returns {import("./plan.d.ts").Plan} */
export function planTuned({ name, file, what, build }) {
  const place = join(cacheDirectory, name);
  const target = join(place, recipeDigest({ directory: recipeDirectory(name), files: [] }));
  if (existsSync(join(target, file))) return { detail: target, problems: [] };
  if (!hasDebianPackages()) {
    const missing = `The sources of ${what}: Debian's, which only root can fetch, and only on a Debian or Ubuntu.`;
    const remedy = "Do without: machines run with what is packaged, and start later.";
    return { detail: "missing", problems: [{ missing, remedy }] };
  }
  const make = async () => {
    if (existsSync(join(target, file))) return;
    await build((draft) => publish(draft, target));
    for (const other of readdirSync(place)) {
      if (join(place, other) !== target) rmSync(join(place, other), { recursive: true, force: true });
    }
    tellComplete(name, target);
  };
  return { detail: target, problems: [], work: () => withLock(name, make, () => tellWaiting(name, `build ${what}`)) };
}
