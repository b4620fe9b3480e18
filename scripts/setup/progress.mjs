import { isReporting, reportPart } from "./report.mjs";

/** Below this a command's progress is noise. */
const SILENT_MS = 700;
const TERMINAL_INTERVAL_MS = 250;
const LOG_INTERVAL_MS = 10_000;

/**
 * What a program that started set-up is told of what goes on.
 * @typedef {object} Work
 * @property {string} part what it is done for
 * @property {"downloading" | "unpacking" | "building"} status
 * @property {() => number} [doneBytes]
 */

/**
 * Shows on standard error that something goes on, and for how long: on a terminal in one line, otherwise in a line now and then.
 * @param {string} title
 * @param {Work} [work]
 */
export function showProgress(title, work) {
  return isReporting ? reportProgress(work) : drawProgress(title);
}

/** @param {string} title */
function drawProgress(title) {
  const startedAtMs = performance.now();
  const isTerminal = process.stderr.isTTY === true;
  let word = "";
  let hasShown = false;
  const show = () => {
    hasShown = true;
    const line = `  ▸ ${title}: ${seconds(startedAtMs)}${word === "" ? "" : `, ${word}`}`;
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
    /** @param {number | undefined} _bytes */
    expect(_bytes) {},
    /** @param {string} mark */
    end(mark) {
      clearTimeout(first);
      clearInterval(interval);
      if (hasShown)
        process.stderr.write(`${isTerminal ? "\r\x1b[K" : ""}  ${mark} ${title}: ${seconds(startedAtMs)}\n`);
    },
  };
}

/** @param {Work | undefined} work */
function reportProgress(work) {
  /** @type {number | undefined} */
  let totalBytes;
  const show = () => {
    if (work === undefined) return;
    const { part, status, doneBytes = () => 0 } = work;
    reportPart({ part, status, doneBytes: Math.min(doneBytes(), totalBytes ?? Number.MAX_SAFE_INTEGER), totalBytes });
  };
  show();
  const interval = setInterval(show, TERMINAL_INTERVAL_MS);
  return {
    /** @param {string | undefined} _next */
    say(_next) {},
    /** @param {number | undefined} bytes */
    expect(bytes) {
      totalBytes ??= bytes;
    },
    /** @param {string} _mark */
    end(_mark) {
      clearInterval(interval);
    },
  };
}

/** @param {number} startedAtMs */
function seconds(startedAtMs) {
  return `${Math.round((performance.now() - startedAtMs) / 1000)} s`;
}
