import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { InterruptedError, runCommand } from "./command.mjs";
import { findProgram } from "./find-program.mjs";
import { outputOf } from "./output-of.mjs";

/** Where set-up keeps what it fetched or built. */
export const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");

/** Where packages are unpacked; the number of the process that does it follows. */
const STAGING = ".packages-";
const APT_HINT = "Check the network and /etc/apt/sources.list, then run the same command again.";
const DISK_HINT = "Look whether the disk is full, then run the same command again.";

/** Whether packages can be fetched and unpacked here. */
export function hasDebianPackages() {
  return process.getuid?.() === 0 && ["apt-get", "dpkg-deb", "tar"].every((name) => findProgram(name) !== undefined);
}

/**
 * The version that apt would install.
 * @param {string} name
 * @returns {string | undefined}
 */
export function candidateVersion(name) {
  return /^\s+Candidate: (?!\(none\))(\S+)$/m.exec(outputOf("apt-cache", ["policy", name]))?.[1];
}

/** @param {string} name */
export function isListed(name) {
  return candidateVersion(name) !== undefined;
}

/** Reads the list of packages, unless it knows these. @param {readonly string[]} names */
export async function ensureListed(names) {
  const candidates = outputOf("apt-cache", ["policy", ...names]).match(/^\s+Candidate: (?!\(none\))/gm) ?? [];
  if (candidates.length < names.length) await update("Reading the list of packages");
}

/**
 * What packages to fetch, and whether for a machine that has none yet.
 * @typedef {object} Request
 * @property {string} part what they are for, in a word
 * @property {string} title
 * @property {readonly string[]} names
 * @property {"none" | "missing" | "all"} dependencies those that this machine lacks, or all there are
 */

/**
 * Runs `work` with a directory that has the packages' files unpacked, and nothing of which stays. Nothing is installed.
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
    mkdirSync(join(archives, "partial"), { recursive: true });
    // apt knows policies of packages, not of their versions.
    await ensureListed(request.names.map((name) => name.replace(/=.*/, "")));
    await download(request, staging).catch(async (error) => {
      if (error instanceof InterruptedError) throw error;
      // The list names packages that the server has replaced since.
      await update("Reading the list of packages again");
      await download(request, staging);
    });
    const root = join(staging, "root");
    mkdirSync(root);
    if (request.dependencies === "all") mergeDirectories(root);
    interruption.check();
    await unpack(request.part, archives, root);
    interruption.check();
    await work(root);
  } finally {
    interruption.stop();
    // What was interrupted may still be writing for a moment.
    rmSync(staging, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** A signal between two commands must not end set-up before it has cleared away. @param {string} title */
function noteInterruption(title) {
  let isInterrupted = false;
  const note = () => {
    isInterrupted = true;
  };
  process.on("SIGINT", note).on("SIGTERM", note);
  return {
    check() {
      if (isInterrupted) throw new InterruptedError(`${title}: interrupted. The next run takes it up again.`);
    },
    stop() {
      process.off("SIGINT", note).off("SIGTERM", note);
    },
  };
}

/** What set-ups left that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(cacheDirectory)) {
    const pid = name.startsWith(STAGING) ? name.slice(STAGING.length).split("-")[0] : undefined;
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(cacheDirectory, name), { recursive: true, force: true });
    }
  }
}

/**
 * Gives a finished directory or file its name; whoever finds it finds all of it.
 * @param {string} from
 * @param {string} to
 */
export function publish(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  renameSync(from, to);
}

/**
 * @param {Request} request
 * @param {string} staging
 */
async function download({ part, title, names, dependencies }, staging) {
  const archives = join(staging, "archives");
  /** @type {import("./progress.mjs").Work} */
  const work = { part, status: "downloading", doneBytes: () => filesSize(archives) };
  if (dependencies === "none") {
    await apt(title, ["download", ...names], archives, work);
    return;
  }
  const flags = ["--download-only", "--yes", "--no-install-recommends", "-o", `Dir::Cache::archives=${archives}`];
  if (dependencies === "all") {
    // For apt, a machine with an empty list of installed packages.
    const status = join(staging, "status");
    writeFileSync(status, "");
    flags.push("-o", `Dir::State::status=${status}`, "-o", "APT::Install-Suggests=false");
  }
  await apt(title, ["install", ...flags, ...names], archives, work);
}

/** As apt says how much it is about to fetch: `Need to get 38.5 MB of archives.` and `Get:1 … [14.2 MB]`. @param {string} line */
function expectedBytes(line) {
  const [, amount, unit = ""] =
    /^Need to get ([\d.,]+) (k?M?G?)B/.exec(line) ?? /^Get:1 .*\[([\d.,]+) (k?M?G?)B\]$/.exec(line) ?? [];
  const factors = { k: 1e3, M: 1e6, G: 1e9 };
  return amount === undefined
    ? undefined
    : Number(amount.replaceAll(",", "")) * (factors[/** @type {"k"} */ (unit)] ?? 1);
}

/** Of the files in a directory, and of those that are not whole yet. @param {string} directory */
function filesSize(directory) {
  let bytes = 0;
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const info = statSync(join(directory, name), { throwIfNoEntry: false });
    if (info?.isFile() === true) bytes += info.size;
  }
  return bytes;
}

/**
 * Directories that a package has and the root has as links (/bin, /lib) stay links.
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
    hint: DISK_HINT,
  });
}

/** As Debian's own installer begins: some packages still have files in the old places. @param {string} root */
function mergeDirectories(root) {
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
}

/** @param {string} title */
function update(title) {
  return apt(title, ["update"], "/");
}

/**
 * @param {string} title
 * @param {readonly string[]} args
 * @param {string} cwd
 * @param {import("./progress.mjs").Work} [work]
 */
function apt(title, args, cwd, work) {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  return runCommand({ title, argv: ["apt-get", ...args], cwd, env, work, expectedBytes, hint: APT_HINT });
}
