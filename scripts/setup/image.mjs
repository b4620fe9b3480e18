import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { cacheDirectory, hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { finishImage } from "./image-finish.mjs";
import { recipeDigest, recipeDirectory } from "./image-recipe.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";

const missing = {
  missing: "The root filesystem of machines: Debian's packages, which only root can fetch, on a Debian or Ubuntu.",
  remedy: "Copy ~/.cache/sandpiper/image from a Debian machine, where `npm run setup image` makes it.",
};

/** @returns {import("./plan.d.ts").Plan} */
export function planImage() {
  const target = targetDirectory();
  if (existsSync(target)) return { detail: target, problems: [] };
  if (!hasDebianPackages()) return { detail: "missing", problems: [missing] };
  return { detail: target, problems: [], work: async () => void (await provideImage()) };
}

/**
 * The directory with the root filesystem that machines have unless another is named, built once for each recipe.
 * @returns {Promise<string>}
 */
export async function provideImage() {
  const target = targetDirectory();
  if (existsSync(target)) return target;
  if (!hasDebianPackages()) throw new CommandError(`${missing.missing}\n${missing.remedy}`);
  const onWait = () => console.error("  ▸ Waiting for somebody else to build the image");
  await withLock("image", async () => (existsSync(target) ? undefined : build(target)), onWait);
  return target;
}

function targetDirectory() {
  return join(cacheDirectory, "image", recipeDigest());
}

/** @param {string} target */
async function build(target) {
  const names = readFileSync(join(recipeDirectory, "packages.txt"), "utf8").trim().split("\n");
  const title = "Downloading the packages of the image (once; nothing is installed)";
  await withPackages({ title, names, dependencies: "all" }, async (unpacked) => {
    await finishImage(unpacked);
    publish(unpacked, target);
  });
  const mebibytes = /^\d+/.exec(outputOf("du", ["-sm", target]))?.[0];
  console.error(`  ✓ The image has ${mebibytes} MiB: ${target}`);
}
