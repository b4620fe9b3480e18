import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { runCommand } from "./command.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";

/** A root shell that was not a login has no sbin on its PATH. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const APT_HINT = "Check the network and /etc/apt/sources.list, then run the same command again.";

export function canUnpack() {
  return process.getuid?.() === 0 && findProgram("apt-get") !== undefined && findProgram("dpkg-deb") !== undefined;
}

/**
 * Where a package of Debian is unpacked, with what it needs.
 * @param {string} name
 */
export function unpackedRoot(name) {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper", name);
}

/** @param {string} name */
export function findAnywhere(name) {
  return findProgram(name) ?? SYSTEM_DIRECTORIES.map((directory) => join(directory, name)).find(isProgram);
}

/** @param {readonly string[]} directories */
export function pathWith(directories) {
  return [...directories, process.env["PATH"] ?? "", ...SYSTEM_DIRECTORIES].join(":");
}

/**
 * Unpacks packages, and what of their needs the machine does not have, once per user. Nothing is installed.
 * @param {string} name of the package that the others are for
 * @param {() => readonly string[]} choose names all of them, once the list of packages is there
 */
export async function unpackPackages(name, choose) {
  const root = unpackedRoot(name);
  mkdirSync(dirname(root), { recursive: true });
  const onWait = () => console.error(`  ▸ Waiting for somebody else to unpack ${name}`);
  await withLock(name, async () => (existsSync(root) ? undefined : unpack(name, choose)), onWait);
}

/** @param {string} name */
export function isListed(name) {
  return outputOf("apt-cache", ["show", name]) !== "";
}

/**
 * @param {string} name
 * @param {() => readonly string[]} choose
 */
async function unpack(name, choose) {
  const root = unpackedRoot(name);
  const staging = mkdtempSync(`${root}.`);
  try {
    const archives = join(staging, "archives");
    mkdirSync(join(archives, "partial"), { recursive: true });
    if (!isListed(name)) await apt("Reading the list of packages", ["update"]);
    await download(name, choose(), archives).catch(async () => {
      // The list names packages that the server has replaced since.
      await apt("Reading the list of packages again", ["update"]);
      await download(name, choose(), archives);
    });
    const files = readdirSync(archives).filter((file) => file.endsWith(".deb"));
    for (const file of files) {
      await runCommand({
        title: `Unpacking ${file.split("_")[0]}`,
        argv: ["dpkg-deb", "--extract", join(archives, file), join(staging, "root")],
        cwd: staging,
        hint: "Look whether the disk is full, then run the same command again.",
      });
    }
    renameSync(join(staging, "root"), root);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * @param {string} name
 * @param {readonly string[]} packages
 * @param {string} archives
 */
async function download(name, packages, archives) {
  const flags = ["--download-only", "--yes", "--no-install-recommends", "-o", `Dir::Cache::archives=${archives}`];
  await apt(`Downloading Debian's ${name} (once; nothing is installed)`, ["install", ...flags, ...packages]);
}

/**
 * @param {string} title
 * @param {readonly string[]} args
 */
function apt(title, args) {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  return runCommand({ title, argv: ["apt-get", ...args], cwd: "/", env, hint: APT_HINT });
}
