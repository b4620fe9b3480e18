import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CommandError } from "./command.mjs";
import {
  cacheDirectory,
  candidateVersion,
  ensureListed,
  hasDebianPackages,
  publish,
  withPackages,
} from "./debian-packages.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";
import { repoDirectory } from "./repo-directory.mjs";
import { tellComplete, tellWaiting } from "./report.mjs";

/** Names the newest kernel, and is of its version. */
const META_PACKAGE = "linux-image-cloud-amd64";
const PART = "kernel";
const root = join(cacheDirectory, "kernel");
const missing = {
  missing: "A kernel for machines: Debian's packages, which only root can fetch, and only on a Debian or Ubuntu.",
  remedy: "Copy ~/.cache/sandpiper/kernel from a Debian machine, as root of which `npm run setup kernel` makes it.",
};

/** @returns {import("./plan.d.ts").Plan} */
export function planKernel() {
  const found = findKernel();
  if (found !== undefined) return { detail: found, problems: [] };
  if (!hasDebianPackages()) return { detail: "missing", problems: [missing] };
  const onWait = () => tellWaiting(PART, "fetch the kernel");
  const fetchOnce = async () => (findKernel() === undefined ? fetchKernel() : undefined);
  return { detail: root, problems: [], work: () => withLock("kernel", fetchOnce, onWait) };
}

/** As the cache has it: an update is fetched when that is removed. */
function findKernel() {
  const versions = existsSync(root) ? readdirSync(root) : [];
  return versions.map((version) => join(root, version, "vmlinuz")).find((path) => existsSync(path));
}

/** Debian's cloud kernel, which is made for virtual machines and little else, and the modules that the agent loads. */
async function fetchKernel() {
  await ensureListed([META_PACKAGE]);
  const version = candidateVersion(META_PACKAGE);
  const name = /Depends: (linux-image-\S+)/.exec(outputOf("apt-cache", ["depends", META_PACKAGE]))?.[1];
  if (version === undefined || name === undefined) throw new CommandError(`apt knows no package ${META_PACKAGE}.`);
  const title = `Downloading Debian's cloud kernel ${version} (once; nothing is installed)`;
  await withPackages({ part: PART, title, names: [name], dependencies: "none" }, async (unpacked) => {
    const draft = join(unpacked, "sandpiper");
    mkdirSync(join(draft, "modules"), { recursive: true });
    const kernel = readdirSync(join(unpacked, "boot")).find((file) => file.startsWith("vmlinuz-"));
    if (kernel === undefined) throw new CommandError(`The package ${name} has no kernel in it.`);
    cpSync(join(unpacked, "boot", kernel), join(draft, "vmlinuz"));
    for (const [index, module] of findModules(join(unpacked, "lib/modules")).entries()) {
      cpSync(module, join(draft, "modules", `${String(index).padStart(2, "0")}-${basename(module)}`));
    }
    publish(draft, join(root, version));
  });
  tellComplete(PART, join(root, version));
}

/**
 * Those of images/kernel/modules.txt; what a kernel has built in it does not have as a file.
 * @param {string} directory
 */
function findModules(directory) {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const names = readFileSync(join(repoDirectory, "images/kernel/modules.txt"), "utf8").trim().split("\n");
  return names
    .map((name) => files.find((file) => basename(file) === `${name}.ko`))
    .flatMap((file) => (file === undefined ? [] : [join(directory, file)]));
}
