import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { Apt } from "./apt.mjs";
import { runCommand } from "./command.mjs";
import { cacheDirectory } from "./directories.mjs";
import { findProgram } from "./programs.mjs";
import { InterruptedError } from "./setup-error.mjs";

/** Where packages are unpacked; the id of the process that unpacks them follows. */
const STAGING = ".packages-";

/** Whether packages can be downloaded and unpacked here. */
export function hasDebianPackages() {
  return process.getuid?.() === 0 && ["apt-get", "dpkg-deb", "tar"].every((name) => findProgram(name) !== undefined);
}

/**
 * @typedef {object} Request
 * @property {string} part what the packages are for, in a word
 * @property {string} title
 * @property {(apt: Apt) => readonly string[]} names chooses packages, `name` or `name=version`, once the lists are read
 * @property {"none" | "beyond base" | "all"} dependencies which of their dependencies to fetch as well
 */

/**
 * Runs `work` with a directory that has the packages' files, and removes the directory afterwards. Nothing is installed.
 * @param {Request} request
 * @param {(root: string) => Promise<void>} work
 */
export async function withPackages(request, work) {
  mkdirSync(cacheDirectory, { recursive: true });
  removeAbandoned();
  const interruption = noteInterruption(request.title);
  const staging = mkdtempSync(join(cacheDirectory, `${STAGING}${process.pid}-`));
  try {
    const archives = join(staging, "archives");
    mkdirSync(archives);
    const apt = new Apt(staging);
    await fetch(apt, request, archives);
    interruption.check();
    const root = join(staging, "root");
    mkdirSync(root);
    mergeDirectories(root);
    await unpack(request.part, archives, root);
    interruption.check();
    await work(root);
  } finally {
    interruption.stop();
    // A command that was interrupted may still be writing for a moment.
    rmSync(staging, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/**
 * @param {Apt} apt
 * @param {Request} request
 * @param {string} archives
 */
async function fetch(apt, request, archives) {
  // Without lists, apt knows no package at all.
  if (apt.candidate("dpkg") === undefined) await apt.update("Reading Debian's package lists");
  await download(apt, request, archives).catch(async (error) => {
    if (error instanceof InterruptedError) throw error;
    // Lists of some days ago name packages that the server has replaced since.
    await apt.update("Reading Debian's package lists again");
    await download(apt, request, archives);
  });
}

/**
 * @param {Apt} apt
 * @param {Request} request
 * @param {string} archives
 */
async function download(apt, { part, title, names, dependencies }, archives) {
  const chosen = names(apt);
  const entries =
    dependencies === "none"
      ? chosen
      : await (dependencies === "all" ? apt.closure(chosen) : apt.closureBeyondBase(chosen));
  await apt.run({
    title,
    args: ["download", ...entries],
    cwd: archives,
    work: {
      part,
      status: "downloading",
      doneBytes: () => filesSize(archives),
      totalBytes: await apt.downloadBytes(entries),
    },
  });
}

/** A signal between two commands must not end set-up before it has cleaned up. @param {string} title */
function noteInterruption(title) {
  let isInterrupted = false;
  const note = () => {
    isInterrupted = true;
  };
  process.on("SIGINT", note).on("SIGTERM", note);
  return {
    check() {
      if (isInterrupted) throw new InterruptedError(title);
    },
    stop() {
      process.off("SIGINT", note).off("SIGTERM", note);
    },
  };
}

/** Removes the directories of set-ups that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(cacheDirectory)) {
    const pid = name.startsWith(STAGING) ? name.slice(STAGING.length).split("-")[0] : undefined;
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(cacheDirectory, name), { recursive: true, force: true });
    }
  }
}

/**
 * Moves a finished directory or file to its place, so that readers see all of it or nothing.
 * @param {string} from
 * @param {string} to
 */
export function publish(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  renameSync(from, to);
}

/** Of all files in a directory, finished or not. @param {string} directory */
function filesSize(directory) {
  let bytes = 0;
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const info = statSync(join(directory, name), { throwIfNoEntry: false });
    if (info?.isFile() === true) bytes += info.size;
  }
  return bytes;
}

/** Some packages still have files in /bin and /lib, which are links on every current system. @param {string} root */
function mergeDirectories(root) {
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
}

/**
 * @param {string} part
 * @param {string} archives
 * @param {string} root
 */
async function unpack(part, archives, root) {
  const script = [
    "set -eo pipefail",
    'for file in *.deb; do echo "$file"; dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$0"; done',
  ].join("\n");
  await runCommand({
    title: "Unpacking packages",
    argv: ["bash", "-c", script, root],
    cwd: archives,
    describe: (line) => line.split("_")[0],
    work: { part, status: "unpacking" },
    hint: "Check that the disk is not full, then run the same command again.",
  });
}
