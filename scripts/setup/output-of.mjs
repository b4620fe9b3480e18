import { execFileSync } from "node:child_process";

/**
 * What a program prints, or nothing when it fails.
 * @param {string} program
 * @param {readonly string[]} args
 */
export function outputOf(program, args) {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return "";
  }
}
