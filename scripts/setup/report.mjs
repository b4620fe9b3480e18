import { outputOf } from "./output-of.mjs";

/** For a program that started set-up: lines of JSON on standard output, and not a word for people. */
export const isReporting = process.argv.includes("--report");

// Whoever asked may be gone; what is under way is of use to the next one who does.
if (isReporting) process.stdout.on("error", () => {});

/**
 * @typedef {object} PartReport
 * @property {string} part
 * @property {"waiting" | "downloading" | "unpacking" | "building" | "complete"} status
 * @property {number} [doneBytes]
 * @property {number | undefined} [totalBytes]
 */

/** @param {PartReport} report */
export function reportPart(report) {
  write(report);
}

/** @param {{ missing: string, remedy: string }[] | string} failure what has to be done first, or what went wrong */
export function reportFailure(failure) {
  write(typeof failure === "string" ? { error: failure } : { problems: failure });
}

/**
 * Says that somebody else is at it, who is waited for.
 * @param {string} part
 * @param {string} what they do, for example "fetch the kernel"
 */
export function tellWaiting(part, what) {
  if (isReporting) reportPart({ part, status: "waiting" });
  else console.error(`  ▸ Waiting for somebody else to ${what}`);
}

/**
 * Says what came of it, with its size.
 * @param {string} part
 * @param {string} path
 */
export function tellComplete(part, path) {
  const kibibytes = Number(/^\d+/.exec(outputOf("du", ["-skD", path]))?.[0] ?? 0);
  if (isReporting) reportPart({ part, status: "complete", doneBytes: kibibytes * 1024 });
  else console.error(`  ✓ ${part}: ${Math.ceil(kibibytes / 1024)} MiB in ${path}`);
}

/** @param {object} line */
function write(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
