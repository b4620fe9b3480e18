import { spawn } from "node:child_process";
import { showProgress } from "./progress.mjs";
import { InterruptedError, SetupError } from "./setup-error.mjs";

const PATIENCE_MS = 1000;
const KEPT_FIRST_LINES = 15;
const KEPT_LAST_LINES = 25;

/**
 * @typedef {object} Command
 * @property {string} title what the user reads while it runs
 * @property {readonly [string, ...string[]]} argv
 * @property {string} cwd
 * @property {Record<string, string | undefined>} [env] added to this process's own
 * @property {(line: string) => string | undefined} [describe] turns a line of output into a note on progress
 * @property {import("./progress.mjs").Work | undefined} [work] for reports
 * @property {string} hint what to do when it fails
 */

/**
 * Runs a command and shows progress instead of its output. When it fails, the error has the beginning and the end of the output.
 * @param {Command} command
 * @returns {Promise<void>}
 */
export function runCommand(command) {
  return new Promise((resolve, reject) => {
    const [program, ...args] = command.argv;
    const child = spawn(program, args, {
      cwd: command.cwd,
      env: { ...process.env, ...command.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    /** @type {string[]} */
    const lines = [];
    let wasCut = false;
    const progress = showProgress(command.title, command.work);
    const interruption = forwardSignals(child);
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream.setEncoding("utf8").on("data", (text) => {
        const parts = `${rest}${text}`.split("\n");
        rest = parts.pop() ?? "";
        for (const line of parts) {
          lines.push(line);
          if (lines.length > KEPT_FIRST_LINES + KEPT_LAST_LINES) wasCut = lines.splice(KEPT_FIRST_LINES, 1).length > 0;
          progress.say(command.describe?.(line));
        }
      });
      stream.on("end", () => rest !== "" && lines.push(rest));
    }
    /** @param {string} outcome */
    const fail = (outcome) => {
      progress.end("✗");
      if (wasCut) lines.splice(KEPT_FIRST_LINES, 0, "⋮");
      const output = lines.map((line) => `\n  │ ${line}`).join("");
      reject(new SetupError(`${command.title}: \`${command.argv.join(" ")}\` ${outcome}${output}`, command.hint));
    };
    child.once("error", (error) => {
      interruption.stop();
      fail(`could not be started: ${error.message}`);
    });
    child.once("close", (code, signal) => {
      interruption.stop();
      if (interruption.signal !== undefined) {
        progress.end("✗");
        reject(new InterruptedError(command.title));
      } else if (code === 0) {
        progress.end("✓");
        resolve();
      } else {
        fail(code === null ? `was ended by ${signal}` : `exited with ${code}`);
      }
    });
  });
}

/** @param {import("node:child_process").ChildProcess} child */
function forwardSignals(child) {
  const interruption = {
    /** @type {NodeJS.Signals | undefined} */
    signal: undefined,
    stop() {
      clearTimeout(impatience);
      process.off("SIGINT", forward);
      process.off("SIGTERM", forward);
    },
  };
  /** @type {NodeJS.Timeout | undefined} */
  let impatience;
  /** @param {NodeJS.Signals} signal */
  const forward = (signal) => {
    interruption.signal = signal;
    child.kill(signal);
    // npm can take ten seconds to notice.
    impatience ??= setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  };
  process.on("SIGINT", forward);
  process.on("SIGTERM", forward);
  return interruption;
}
