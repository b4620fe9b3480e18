import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { ensureListed, withPackages } from "./debian-packages.mjs";
import { installMissingPackages } from "./install-packages.mjs";
import { outputOf } from "./output-of.mjs";
import { planTuned, recipeDirectory } from "./tuned-part.mjs";

const NAME = "tuned-kernel";
const KERNEL = "vmlinuz";
/** Names the newest sources. */
const META_PACKAGE = "linux-source";
const BUILD_PACKAGES = ["bc", "bison", "flex", "gcc", "libc6-dev", "libelf-dev", "make", "xz-utils"];
const HINT = "If it fails again, do without: machines run with Debian's kernel, too.";

/** A kernel with nothing in it that a translated machine with one processor does not use. */
export function planTunedKernel() {
  return planTuned({ name: NAME, file: KERNEL, what: "a kernel", build });
}

/** @param {(draft: string) => void} publish */
async function build(publish) {
  await installMissingPackages(BUILD_PACKAGES);
  await ensureListed([META_PACKAGE]);
  const source = /Depends: (linux-source-\S+)/.exec(outputOf("apt-cache", ["depends", META_PACKAGE]))?.[1];
  if (source === undefined) throw new CommandError(`apt does not say what ${META_PACKAGE} is.`);
  const title = "Downloading the sources of Linux";
  const request = { part: NAME, title, names: [source], dependencies: /** @type {const} */ ("none") };
  await withPackages(request, async (unpacked) => {
    const draft = join(unpacked, "done");
    mkdirSync(draft);
    cpSync(await compile(join(unpacked, "usr/src"), source), join(draft, KERNEL));
    publish(draft);
  });
}

/** @param {string} directory with the archive @param {string} source */
async function compile(directory, source) {
  const work = /** @type {const} */ ({ part: NAME, status: "building" });
  const common = { work, hint: HINT };
  const archive = readdirSync(directory).find((name) => name.startsWith(`${source}.tar`));
  if (archive === undefined) throw new CommandError(`The package ${source} has no sources in it.`);
  await runCommand({
    ...common,
    title: "Unpacking the sources of Linux",
    argv: ["tar", "-xf", archive],
    cwd: directory,
  });
  const cwd = join(directory, source);
  const config = join(recipeDirectory(NAME), "kernel.config");
  const configure = 'make tinyconfig && scripts/kconfig/merge_config.sh -m .config "$1" && make olddefconfig';
  await runCommand({ ...common, title: "Configuring Linux", argv: ["sh", "-ec", configure, "sh", config], cwd });
  let compiled = 0;
  await runCommand({
    ...common,
    title: "Building Linux (once, about five minutes)",
    argv: ["make", `-j${availableParallelism()}`, "bzImage"],
    cwd,
    describe: (line) => (/^\s+(?:CC|AS)\s/.test(line) ? `${++compiled} files compiled` : undefined),
  });
  return join(cwd, "arch/x86/boot/bzImage");
}
