import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { repoDirectory } from "./directories.mjs";

/** Raise it when set-up builds the same recipe differently. */
const GENERATION = 1;

/**
 * What an image is made of: a directory with `packages.txt` and `links.txt`, and directories whose files replace those of
 * the packages, in this order.
 * @typedef {object} Recipe
 * @property {string} directory
 * @property {readonly string[]} files
 */

const images = join(repoDirectory, "images");
const defaultFiles = join(images, "default/files");

/** @type {Recipe} */
export const defaultRecipe = { directory: join(images, "default"), files: [defaultFiles] };

/** @type {Recipe} */
export const dockerRecipe = {
  directory: join(images, "docker"),
  files: [defaultFiles, join(images, "docker/files")],
};

/** @type {Recipe} */
export const nodeRecipe = { directory: join(images, "node"), files: [] };

/** Changes with every file of the recipe; it is the name of the image. @param {Recipe} recipe */
export function recipeDigest({ directory, files }) {
  const hash = createHash("sha256").update(`${GENERATION}`);
  for (const part of [directory, ...files.filter((path) => !path.startsWith(directory))]) {
    for (const name of readdirSync(part, { recursive: true, encoding: "utf8" }).sort()) {
      const path = join(part, name);
      if (statSync(path).isDirectory()) continue;
      hash.update(`${name}\0`).update(readFileSync(path)).update("\0");
    }
  }
  return hash.digest("hex").slice(0, 16);
}

/** @param {Recipe} recipe @param {string} name of a file with one entry per line */
export function recipeLines({ directory }, name) {
  return readFileSync(join(directory, name), "utf8").trim().split("\n");
}
