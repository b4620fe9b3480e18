import { existsSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { finishImage } from "./image-finish.mjs";
import { defaultRecipe, recipeDigest, recipeLines } from "./image-recipe.mjs";
import { withLock } from "./lock.mjs";
import { tellComplete, tellWaiting } from "./report.mjs";

const PART = "root files";
const missing = {
  missing: "The root filesystem of machines: Debian's packages, which only root can fetch, on a Debian or Ubuntu.",
  remedy: "Copy ~/.cache/sandpiper/image from a Debian machine, where `npm run setup image` makes it.",
};

/**
 * The directory with the root filesystem that machines have unless another is named, built once for each recipe.
 * @returns {import("./plan.d.ts").Plan}
 */
export function planImage() {
  const target = join(cacheDirectory, "image", recipeDigest(defaultRecipe));
  if (existsSync(target)) return { detail: target, problems: [] };
  if (!hasDebianPackages()) return { detail: "missing", problems: [missing] };
  const onWait = () => tellWaiting(PART, "build the image");
  const buildOnce = async () => (existsSync(target) ? undefined : buildImage(defaultRecipe, { part: PART, target }));
  return { detail: target, problems: [], work: () => withLock("image", buildOnce, onWait) };
}

/**
 * @param {import("./image-recipe.mjs").Recipe} recipe
 * @param {object} options
 * @param {string} options.part what progress calls it
 * @param {string} options.target
 * @param {(root: string) => Promise<void>} [options.complete] with what is no file of the recipe and of no package
 */
export async function buildImage(recipe, { part, target, complete }) {
  const names = recipeLines(recipe, "packages.txt");
  const title = "Downloading the packages of the image (once; nothing is installed)";
  await withPackages({ part, title, names, dependencies: "all" }, async (unpacked) => {
    await finishImage(unpacked, recipe);
    await complete?.(unpacked);
    // A package may have given it a date of its own, and the newest image is the one that is used.
    utimesSync(unpacked, new Date(), new Date());
    publish(unpacked, target);
  });
  tellComplete(part, target);
}
