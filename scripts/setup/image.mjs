import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { finishImage } from "./image-finish.mjs";
import { recipeDigest, recipeDirectory } from "./image-recipe.mjs";
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
  const target = join(cacheDirectory, "image", recipeDigest());
  if (existsSync(target)) return { detail: target, problems: [] };
  if (!hasDebianPackages()) return { detail: "missing", problems: [missing] };
  const onWait = () => tellWaiting(PART, "build the image");
  const buildOnce = async () => (existsSync(target) ? undefined : build(target));
  return { detail: target, problems: [], work: () => withLock("image", buildOnce, onWait) };
}

/** @param {string} target */
async function build(target) {
  const names = readFileSync(join(recipeDirectory, "packages.txt"), "utf8").trim().split("\n");
  const title = "Downloading the packages of the image (once; nothing is installed)";
  await withPackages({ part: PART, title, names, dependencies: "all" }, async (unpacked) => {
    await finishImage(unpacked);
    publish(unpacked, target);
  });
  tellComplete(PART, target);
}
