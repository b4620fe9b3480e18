import { existsSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, ensureListed, publish, withPackages } from "./debian-packages.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { tellComplete, tellWaiting } from "./report.mjs";

/** A root shell that was not a login has no sbin on its PATH. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/**
 * Where a package of Debian is unpacked, with what it needs.
 * @param {string} name
 */
export function unpackedRoot(name) {
  return join(cacheDirectory, name);
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
  const onWait = () => tellWaiting(partOf(name), `unpack ${name}`);
  await withLock(name, async () => (existsSync(root) ? undefined : unpack(name, root, choose)), onWait);
}

/**
 * @param {string} name
 * @param {string} root
 * @param {() => readonly string[]} choose
 */
async function unpack(name, root, choose) {
  await ensureListed([name]);
  const title = `Downloading Debian's ${name} (once; nothing is installed)`;
  const request = { part: partOf(name), title, names: choose(), dependencies: /** @type {const} */ ("missing") };
  await withPackages(request, async (files) => publish(files, root));
  tellComplete(partOf(name), root);
}

/** In a word. @param {string} name */
function partOf(name) {
  return name.split("-")[0] ?? name;
}
