import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { repoDirectory } from "./repo-directory.mjs";

/** Raised when the same recipe is followed in another way. */
const GENERATION = 1;

export const recipeDirectory = join(repoDirectory, "images/default");

/** Changes with every file of the recipe, so that an image is named for what it is made of. */
export function recipeDigest(directory = recipeDirectory) {
  const hash = createHash("sha256").update(`${GENERATION}`);
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) continue;
    hash.update(`${name}\0`).update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
