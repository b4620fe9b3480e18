import { execFileSync } from "node:child_process";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A root shell that is not a login shell has no sbin on its PATH. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/**
 * The path of a program as a shell finds it.
 * @param {string} name
 * @returns {string | undefined}
 */
export function findProgram(name) {
  return (process.env["PATH"] ?? "")
    .split(":")
    .filter((directory) => directory.startsWith("/"))
    .map((directory) => join(directory, name))
    .find(isProgram);
}

/**
 * The path of a program on the PATH or in a system directory.
 * @param {string} name
 */
export function findAnywhere(name) {
  return findProgram(name) ?? SYSTEM_DIRECTORIES.map((directory) => join(directory, name)).find(isProgram);
}

/** A PATH that searches these directories first. @param {readonly string[]} directories */
export function pathWith(directories) {
  return [...directories, process.env["PATH"] ?? "", ...SYSTEM_DIRECTORIES].join(":");
}

/** @param {string} path */
export function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The text of a file, or an empty string when it cannot be read. @param {string} path */
export function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * What a program prints in English, or an empty string when it fails.
 * @param {string} program
 * @param {readonly string[]} args
 */
export function outputOf(program, args) {
  try {
    return execFileSync(program, args, {
      env: { ...process.env, LC_ALL: "C" },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch {
    return "";
  }
}
