import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { runCommand } from "./command.mjs";
import { withPackages } from "./debian-packages.mjs";
import { installMissingPackages } from "./install-packages.mjs";
import { planKernel } from "./kernel.mjs";
import { fetchSource } from "./source-package.mjs";
import { planTuned, recipeDirectory } from "./tuned-part.mjs";

const NAME = "tuned-qemu";
const PROGRAM = "qemu-system-x86_64";
const recipe = recipeDirectory(NAME);
const BUILD_PACKAGES = [
  ...["gcc", "libc6-dev", "make", "meson", "ninja-build", "patch", "pkg-config", "python3", "xz-utils"],
  ...["libfdt-dev", "libglib2.0-dev", "libpixman-1-dev", "libseccomp-dev", "zlib1g-dev"],
];
/** What a machine that boots reads first, from Debian's packages. */
const FIRMWARE_PACKAGES = ["qemu-system-data", "seabios"];
const FIRMWARE = ["usr/share/qemu/linuxboot_dma.bin", "usr/share/qemu/kvmvapic.bin", "usr/share/seabios/bios-256k.bin"];
const OPTIMIZATION = "-O3 -march=native";
const HINT = "If it fails again, do without: machines run with Debian's QEMU, too.";

/** QEMU as one program without libraries to load, with nothing in it that machines do not use, arranged for how it is used. */
export function planTunedQemu() {
  return planTuned({ name: NAME, file: PROGRAM, what: "QEMU", build });
}

/** @param {(draft: string) => void} publish */
async function build(publish) {
  await installMissingPackages(BUILD_PACKAGES);
  await planKernel().work?.();
  const title = "Downloading the firmware of machines";
  const request = { part: NAME, title, names: FIRMWARE_PACKAGES, dependencies: /** @type {const} */ ("none") };
  await withPackages(request, async (unpacked) => {
    const directory = join(unpacked, "build");
    const draft = join(unpacked, "done");
    mkdirSync(directory);
    mkdirSync(draft);
    for (const name of FIRMWARE) cpSync(realpathSync(join(unpacked, name)), join(draft, basename(name)));
    const sources = await fetchSource({ part: NAME, source: "qemu", binary: "qemu-system-x86", directory });
    await change(sources);
    const profile = join(directory, "profile");
    await train(await compile(sources, "Building QEMU to see what it does", noteProfile(profile)), draft);
    cpSync(await compile(sources, "Building QEMU for what it does", useProfile(profile)), join(draft, PROGRAM));
    publish(draft);
  });
}

/** @param {string} sources */
async function change(sources) {
  cpSync(join(recipe, "devices.mak"), join(sources, "configs/devices/x86_64-softmmu/sandpiper.mak"));
  const patches = readdirSync(recipe).filter((name) => name.endsWith(".patch"));
  for (const name of patches.sort()) {
    const argv = /** @type {const} */ (["patch", "-p1", "--silent", "-i", join(recipe, name)]);
    await runCommand({ title: `Changing QEMU: ${basename(name, ".patch")}`, argv, cwd: sources, hint: HINT });
  }
}

/** @param {string} directory */
function noteProfile(directory) {
  const flags = `-fprofile-generate -fprofile-update=atomic -fprofile-dir=${directory}`;
  return [`--extra-cflags=${OPTIMIZATION} ${flags}`, "--extra-ldflags=-fprofile-generate"];
}

/** @param {string} directory */
function useProfile(directory) {
  const flags = `-fprofile-use=${directory} -fprofile-partial-training`;
  return [`--extra-cflags=${OPTIMIZATION} ${flags} -Wno-missing-profile -Wno-coverage-mismatch`];
}

/**
 * Always in the same place, by which a profile finds what it is of.
 * @param {string} sources
 * @param {string} title
 * @param {readonly string[]} profiling
 */
async function compile(sources, title, profiling) {
  const cwd = join(sources, "build");
  rmSync(cwd, { recursive: true, force: true });
  mkdirSync(cwd);
  const common = { work: /** @type {const} */ ({ part: NAME, status: "building" }), hint: HINT, cwd };
  const flags = readFileSync(join(recipe, "configure.txt"), "utf8").trim().split("\n");
  await runCommand({ ...common, title: "Configuring QEMU", argv: ["../configure", ...flags, ...profiling] });
  await runCommand({
    ...common,
    title: `${title} (once, about two minutes)`,
    argv: ["ninja", `-j${availableParallelism()}`, PROGRAM],
    describe: (line) => /^\[(\d+\/\d+)\]/.exec(line)?.[1],
  });
  return join(cwd, PROGRAM);
}

/**
 * Has it translate a kernel, which finds no files to start with and ends.
 * @param {string} program
 * @param {string} firmware
 */
async function train(program, firmware) {
  const kernel = planKernel().detail;
  await runCommand({
    title: "Booting a kernel with it",
    argv: [
      program,
      ...["-L", firmware, "-M", "q35", "-accel", "tcg", "-cpu", "max", "-m", "256M", "-nodefaults"],
      ...["-display", "none", "-no-reboot", "-kernel", kernel, "-append", "panic=-1"],
    ],
    cwd: firmware,
    hint: HINT,
  });
}
