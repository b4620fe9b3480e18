/** Below this a command's progress is noise. */
const SILENT_MS = 700;
const TERMINAL_INTERVAL_MS = 250;
const LOG_INTERVAL_MS = 10_000;

/**
 * Shows on standard error that something goes on, and for how long: on a terminal in one line, otherwise in a line now and then.
 * @param {string} title
 */
export function showProgress(title) {
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
    /** @param {string} mark */
    end(mark) {
      clearTimeout(first);
      clearInterval(interval);
      if (hasShown)
        process.stderr.write(`${isTerminal ? "\r\x1b[K" : ""}  ${mark} ${title}: ${seconds(startedAtMs)}\n`);
    },
  };
}

/** @param {number} startedAtMs */
function seconds(startedAtMs) {
  return `${Math.round((performance.now() - startedAtMs) / 1000)} s`;
}
