import { existsSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { cacheDirectory, hasDebianPackages, withPackages } from "./debian-packages.mjs";
import { buildImage } from "./image.mjs";
import { dockerRecipe, recipeDigest } from "./image-recipe.mjs";
import { copyModules, kernelPackage, kernelVersion } from "./kernel.mjs";
import { withLock } from "./lock.mjs";
import { tellWaiting } from "./report.mjs";

const PART = "root files with a container engine";
const missing = {
  missing: "The image of machines with an engine: Debian's packages, which only root can fetch, on a Debian or Ubuntu.",
  remedy: "Copy ~/.cache/sandpiper/docker-image from a Debian machine, where `npm run setup docker-image` makes it.",
};

/**
 * The root filesystem of machines that containers run in: Docker Engine, and the modules that it needs of the kernel that
 * machines boot with.
 * @returns {import("./plan.d.ts").Plan}
 */
export function planDockerImage() {
  const found = target();
  if (found !== undefined && existsSync(found)) return { detail: found, problems: [] };
  if (!hasDebianPackages()) return { detail: "missing", problems: [missing] };
  const onWait = () => tellWaiting(PART, "build the image");
  return { detail: directory, problems: [], work: () => withLock("docker-image", build, onWait) };
}

const directory = join(cacheDirectory, "docker-image");

/** Unknown while there is no kernel. */
function target() {
  const version = kernelVersion();
  return version === undefined ? undefined : join(directory, `${recipeDigest(dockerRecipe)}-${version}`);
}

async function build() {
  const path = target();
  if (path === undefined) throw new CommandError("Machines have no kernel yet. Run: npm run setup kernel docker-image");
  if (!existsSync(path)) await buildImage(dockerRecipe, { part: PART, target: path, complete: addModules });
}

/** @param {string} root */
async function addModules(root) {
  const version = kernelVersion() ?? "";
  const names = [`${kernelPackage(version)}=${version}`];
  const title = `Downloading the modules of kernel ${version} (once; nothing is installed)`;
  await withPackages({ part: PART, title, names, dependencies: "none" }, async (unpacked) => {
    const to = join(root, "usr/lib/sandpiper/modules");
    copyModules(unpacked, { list: join(dockerRecipe.directory, "modules.txt"), to });
  });
}
