import { outputOf } from "./programs.mjs";

/** Shorter commands print nothing. */
const SILENT_MS = 700;
const TERMINAL_INTERVAL_MS = 250;
const LOG_INTERVAL_MS = 10_000;

/** With --report, set-up writes lines of JSON to standard output for the program that started it, and nothing for people. */
export const isReporting = process.argv.includes("--report");

// The program that started set-up may be gone; the work is still of use to the next one.
if (isReporting) process.stdout.on("error", () => {});

/**
 * @typedef {object} Work what a command does, for reports
 * @property {string} part
 * @property {"downloading" | "unpacking" | "building"} status
 * @property {() => number} [doneBytes]
 * @property {number} [totalBytes]
 */

/**
 * Shows on standard error that a command is running, and for how long: on a terminal in one line, otherwise in a line now and then.
 * @param {string} title
 * @param {Work} [work]
 */
export function showProgress(title, work) {
  return isReporting ? reportProgress(work) : drawProgress(title, work);
}

/**
 * @param {string} title
 * @param {Work} [work]
 */
function drawProgress(title, work) {
  const startedAtMs = performance.now();
  const isTerminal = process.stderr.isTTY === true;
  const elapsed = () => `${Math.round((performance.now() - startedAtMs) / 1000)} s`;
  let word = "";
  let hasShown = false;
  const show = () => {
    hasShown = true;
    const detail = work?.totalBytes === undefined ? word : bytesOf(work, work.totalBytes);
    const line = `  ▸ ${title}: ${elapsed()}${detail === "" ? "" : `, ${detail}`}`;
    process.stderr.write(isTerminal ? `\r\x1b[K${line.slice(0, process.stderr.columns || 80)}` : `${line}\n`);
  };
  /** @type {NodeJS.Timeout | undefined} */
  let interval;
  const first = setTimeout(() => {
    show();
    interval = setInterval(show, isTerminal ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS);
  }, SILENT_MS);
  return {
    /** @param {string | undefined} next */
    say(next) {
      word = next ?? word;
    },
    /** @param {string} mark */
    end(mark) {
      clearTimeout(first);
      clearInterval(interval);
      if (hasShown) process.stderr.write(`${isTerminal ? "\r\x1b[K" : ""}  ${mark} ${title}: ${elapsed()}\n`);
    },
  };
}

/**
 * @param {Work} work
 * @param {number} totalBytes
 */
function bytesOf({ doneBytes = () => 0 }, totalBytes) {
  return `${Math.floor(Math.min(doneBytes(), totalBytes) / 1e6)} of ${Math.ceil(totalBytes / 1e6)} MB`;
}

/** @param {Work | undefined} work */
function reportProgress(work) {
  const show = () => {
    if (work === undefined) return;
    const { part, status, doneBytes = () => 0, totalBytes } = work;
    report({ part, status, doneBytes: Math.min(doneBytes(), totalBytes ?? Number.MAX_SAFE_INTEGER), totalBytes });
  };
  show();
  const interval = setInterval(show, TERMINAL_INTERVAL_MS);
  return { say() {}, end: () => clearInterval(interval) };
}

/**
 * Reports that this set-up waits for another one, which does the same work.
 * @param {string} part
 * @param {string} what the other does, for example "build gVisor"
 */
export function reportWaiting(part, what) {
  if (isReporting) report({ part, status: "waiting" });
  else console.error(`  ▸ Waiting for another set-up to ${what}`);
}

/**
 * Reports that a part is complete, and its size.
 * @param {string} part
 * @param {string} path
 */
export function reportComplete(part, path) {
  const kibibytes = Number(/^\d+/.exec(outputOf("du", ["-skD", path]))?.[0] ?? 0);
  if (isReporting) report({ part, status: "complete", doneBytes: kibibytes * 1024 });
  else console.error(`  ✓ ${part}: ${Math.ceil(kibibytes / 1024)} MiB in ${path}`);
}

/** Writes a line of the report: the state of a part, the problems, or the error. @param {object} line */
export function report(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
