import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recipeDigest } from "./image-recipe.mjs";

test("the digest of a recipe changes exactly when one of its files changes", () => {
  const directory = mkdtempSync(join(tmpdir(), "recipe-"));
  try {
    writeFileSync(join(directory, "packages.txt"), "bash\n");
    const recipe = { directory, files: [] };
    const first = recipeDigest(recipe);
    writeFileSync(join(directory, "packages.txt"), "bash\n");
    expect(recipeDigest(recipe)).toBe(first);
    writeFileSync(join(directory, "packages.txt"), "bash\ngit\n");
    expect(recipeDigest(recipe)).not.toBe(first);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
