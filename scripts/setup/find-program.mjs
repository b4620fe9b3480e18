import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

/**
 * The path of a program as a shell would find it.
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

/** @param {string} path */
export function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
