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
  const version = kernelVersion();
  return version === undefined ? undefined : join(root, version, "vmlinuz");
}

/** Of the kernel that machines boot with, as Debian counts. */
export function kernelVersion() {
  const versions = existsSync(root) ? readdirSync(root) : [];
  return versions.find((version) => existsSync(join(root, version, "vmlinuz")));
}

/** What the package of a kernel is called. @param {string} version */
export function kernelPackage(version) {
  const known = outputOf("apt-cache", ["depends", `${META_PACKAGE}=${version}`]);
  const name = /Depends: (linux-image-\S+)/.exec(known)?.[1];
  if (name !== undefined) return name;
  throw new CommandError(
    `apt knows no kernel ${version} any more. Remove ${root} and run the same command with \`kernel\` before it.`,
  );
}

/** Debian's cloud kernel, which is made for virtual machines and little else, and the modules that the agent loads. */
async function fetchKernel() {
  await ensureListed([META_PACKAGE]);
  const version = candidateVersion(META_PACKAGE);
  if (version === undefined) throw new CommandError(`apt knows no package ${META_PACKAGE}.`);
  const name = kernelPackage(version);
  const title = `Downloading Debian's cloud kernel ${version} (once; nothing is installed)`;
  await withPackages({ part: PART, title, names: [name], dependencies: "none" }, async (unpacked) => {
    const draft = join(unpacked, "sandpiper");
    mkdirSync(draft);
    const kernel = readdirSync(join(unpacked, "boot")).find((file) => file.startsWith("vmlinuz-"));
    if (kernel === undefined) throw new CommandError(`The package ${name} has no kernel in it.`);
    cpSync(join(unpacked, "boot", kernel), join(draft, "vmlinuz"));
    copyModules(unpacked, { list: join(repoDirectory, "images/kernel/modules.txt"), to: join(draft, "modules") });
    publish(draft, join(root, version));
  });
  tellComplete(PART, join(root, version));
}

/**
 * Copies modules of an unpacked kernel, with names in the order in which they are loaded; what a kernel has built in it does not
 * have as a file.
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
