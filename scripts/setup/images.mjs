import { existsSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { cacheDirectory } from "./directories.mjs";
import { finishImage } from "./image-finish.mjs";
import { defaultRecipe, dockerRecipe, nodeRecipe, recipeDigest, recipeLines } from "./image-recipe.mjs";
import { copyModules, kernelPackage, kernelVersion } from "./kernel.mjs";
import { withLock } from "./lock.mjs";
import { reportComplete, reportWaiting } from "./progress.mjs";
import { SetupError } from "./setup-error.mjs";

/**
 * The root filesystem of a virtual machine, unless the caller names another one.
 * @returns {import("./plan.mjs").Plan}
 */
export function planImage() {
  const target = () => join(cacheDirectory, "image", recipeDigest(defaultRecipe));
  return planBuild("image", target, { name: "machine image", seconds: 60 }, (path) =>
    buildImage(defaultRecipe, { part: "root files", target: path }),
  );
}

/**
 * The root filesystem of a virtual machine that runs containers: with Docker Engine, and the modules that it needs of the
 * kernel that machines boot.
 * @returns {import("./plan.mjs").Plan}
 */
export function planDockerImage() {
  const target = () => {
    const version = kernelVersion();
    return version && join(cacheDirectory, "docker-image", `${recipeDigest(dockerRecipe)}-${version}`);
  };
  return planBuild("docker-image", target, { name: "machine image with Docker Engine", seconds: 40 }, (path) =>
    buildImage(dockerRecipe, { part: DOCKER_PART, target: path, complete: addModules }),
  );
}

/**
 * The base of the image in deploy/compose/Dockerfile, for tests that run its containers without a registry.
 * @returns {import("./plan.mjs").Plan}
 */
export function planNodeImage() {
  return planBuild("node-image", nodeImagePath, { name: "image of a node", seconds: 30 }, (path) =>
    buildImage(nodeRecipe, { part: "root files of a node", target: path }),
  );
}

export function nodeImagePath() {
  return join(cacheDirectory, "node-image", recipeDigest(nodeRecipe));
}

const DOCKER_PART = "root files with a container engine";

/**
 * @param {string} step
 * @param {() => string | undefined} target undefined without a kernel
 * @param {NonNullable<import("./plan.mjs").Plan["announcement"]>} announcement
 * @param {(path: string) => Promise<void>} build
 * @returns {import("./plan.mjs").Plan}
 */
function planBuild(step, target, announcement, build) {
  const found = target();
  if (found !== undefined && existsSync(found)) return { detail: found, problems: [] };
  if (!hasDebianPackages()) {
    const missing = `The ${announcement.name}: set-up builds it of Debian's packages, which needs root on a Debian or Ubuntu.`;
    const remedy = `Copy ~/.cache/sandpiper/${step} from a Debian machine, on which root has run \`npm run setup ${step}\`.`;
    return { detail: "missing", problems: [{ missing, remedy }] };
  }
  const buildOnce = async () => {
    const path = target();
    if (path === undefined)
      throw new SetupError(`The ${announcement.name} needs a kernel.`, `Run: npm run setup kernel`);
    if (!existsSync(path)) await build(path);
  };
  const onWait = () => reportWaiting(announcement.name, `build the ${announcement.name}`);
  return {
    detail: join(cacheDirectory, step),
    problems: [],
    announcement,
    work: () => withLock(step, buildOnce, onWait),
  };
}

/**
 * @param {import("./image-recipe.mjs").Recipe} recipe
 * @param {object} options
 * @param {string} options.part its name in reports
 * @param {string} options.target
 * @param {(root: string) => Promise<void>} [options.complete] adds what neither the recipe nor a package has
 */
async function buildImage(recipe, { part, target, complete }) {
  const title = "Downloading the packages of the machine image";
  const names = () => recipeLines(recipe, "packages.txt");
  await withPackages({ part, title, names, dependencies: "all" }, async (unpacked) => {
    await finishImage(unpacked, recipe);
    await complete?.(unpacked);
    // A package may have set an old date, and machines use the newest image.
    utimesSync(unpacked, new Date(), new Date());
    publish(unpacked, target);
  });
  reportComplete(part, target);
}

/** @param {string} root */
async function addModules(root) {
  const version = kernelVersion() ?? "";
  const title = `Downloading the modules of kernel ${version}`;
  /** @param {import("./apt.mjs").Apt} apt */
  const names = (apt) => [kernelPackage(apt, version)];
  await withPackages({ part: DOCKER_PART, title, names, dependencies: "none" }, async (unpacked) => {
    const to = join(root, "usr/lib/sandpiper/modules");
    copyModules(unpacked, { list: join(dockerRecipe.directory, "modules.txt"), to });
  });
}
