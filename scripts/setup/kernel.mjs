import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import { hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { cacheDirectory, repoDirectory } from "./directories.mjs";
import { withLock } from "./lock.mjs";
import { reportComplete, reportWaiting } from "./progress.mjs";
import { SetupError } from "./setup-error.mjs";

/** Depends on the newest kernel, and has its version. */
const META_PACKAGE = "linux-image-cloud-amd64";
const PART = "kernel";
const root = join(cacheDirectory, "kernel");
const RECIPE = "modules.txt";
const recipe = join(repoDirectory, "images/kernel", RECIPE);
const problem = {
  missing: "A kernel for virtual machines: set-up takes Debian's, which needs root on a Debian or Ubuntu.",
  remedy: "Copy ~/.cache/sandpiper/kernel from a Debian machine, on which root has run `npm run setup kernel`.",
};

/** @returns {import("./plan.mjs").Plan} */
export function planKernel() {
  const version = kernelVersion();
  // Without Debian's packages the modules of an earlier recipe remain, and machines lack what only new ones do.
  if (version !== undefined && (hasRecipe(version) || !hasDebianPackages())) {
    return { detail: join(root, version, "vmlinuz"), problems: [] };
  }
  if (!hasDebianPackages()) return { detail: "missing", problems: [problem] };
  const fetchOnce = async () => {
    const current = kernelVersion();
    if (current === undefined || !hasRecipe(current)) await fetchKernel();
  };
  return {
    detail: root,
    problems: [],
    announcement: { name: "guest kernel", seconds: 10 },
    work: () => withLock("kernel", fetchOnce, () => reportWaiting(PART, "download the kernel")),
  };
}

/** The version of the cached kernel. Set-up downloads a newer one when the cached one is removed. */
export function kernelVersion() {
  const all = existsSync(root) ? readdirSync(root) : [];
  const versions = all.filter((version) => existsSync(join(root, version, "vmlinuz")));
  return versions.find(hasRecipe) ?? versions[0];
}

/** Whether the modules beside the cached kernel are those of this recipe. @param {string} version */
function hasRecipe(version) {
  const used = join(root, version, RECIPE);
  return existsSync(used) && readFileSync(used, "utf8") === readFileSync(recipe, "utf8");
}

/** Debian's cloud kernel, which is made for virtual machines, and the modules that the agent loads. */
async function fetchKernel() {
  let version = "";
  const request = {
    part: PART,
    title: "Downloading Debian's cloud kernel",
    dependencies: /** @type {const} */ ("none"),
    names: (/** @type {import("./apt.mjs").Apt} */ apt) => {
      version = apt.candidate(META_PACKAGE) ?? "";
      return [kernelPackage(apt, version)];
    },
  };
  await withPackages(request, async (unpacked) => {
    const draft = join(unpacked, "sandpiper");
    mkdirSync(draft);
    const kernel = readdirSync(join(unpacked, "boot")).find((file) => file.startsWith("vmlinuz-"));
    if (kernel === undefined) throw noKernel(version);
    cpSync(join(unpacked, "boot", kernel), join(draft, "vmlinuz"));
    copyModules(unpacked, { list: recipe, to: join(draft, "modules") });
    cpSync(recipe, join(draft, RECIPE));
    const target = join(root, version);
    // A kernel with the modules of an earlier recipe; machines that run do not read it any more.
    if (existsSync(target)) renameSync(target, join(unpacked, "earlier"));
    publish(draft, target);
  });
  reportComplete(PART, join(root, version));
}

/**
 * The package of a kernel, as `name=version`.
 * @param {import("./apt.mjs").Apt} apt
 * @param {string} version
 */
export function kernelPackage(apt, version) {
  const name = apt.dependencies(META_PACKAGE, version).find((dependency) => dependency.startsWith("linux-image-"));
  if (name === undefined) throw noKernel(version);
  return `${name}=${version}`;
}

/** @param {string} version */
function noKernel(version) {
  const what = `apt has no kernel package ${META_PACKAGE} ${version}.`;
  return new SetupError(what, `Run: rm -rf ${root} && apt-get update && npm run setup kernel`);
}

/**
 * Copies modules of an unpacked kernel, with names in the order in which the agent loads them. A kernel has no file for a
 * module that is built in.
 * @param {string} unpacked
 * @param {{ list: string, to: string }} options
 */
export function copyModules(unpacked, { list, to }) {
  const directory = join(unpacked, "lib/modules");
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const names = readFileSync(list, "utf8").trim().split("\n");
  const found = names.flatMap((name) => files.find((file) => basename(file) === `${name}.ko`) ?? []);
  mkdirSync(to, { recursive: true });
  for (const [index, file] of found.entries()) {
    cpSync(join(directory, file), join(to, `${String(index).padStart(2, "0")}-${basename(file)}`));
  }
}
