/** A failure that the user can act on: the message says what failed, its last line what to do next. */
export class SetupError extends Error {
  /**
   * @param {string} what
   * @param {string} nextStep
   */
  constructor(what, nextStep) {
    super(`${what}\n${nextStep}`);
  }
}

/** A signal stopped set-up. */
export class InterruptedError extends SetupError {
  /** @param {string} title of the work that it stopped */
  constructor(title) {
    super(`${title}: interrupted.`, "Run the same command again to continue.");
  }
}

/** @type {Record<string, string>} */
const NEXT_STEPS = {
  ENOSPC: "Free some disk space, then run the same command again.",
  EDQUOT: "Free some disk space, then run the same command again.",
  EACCES: "Give this user access to that path, or run the same command as root.",
  EPERM: "Give this user access to that path, or run the same command as root.",
  EROFS: "Make that file system writable, or set XDG_CACHE_HOME to a writable directory.",
};

/**
 * What to print for anything that a step throws. A stack trace does not tell the user what to do next.
 * @param {unknown} error
 * @param {string} step
 * @returns {string}
 */
export function explain(error, step) {
  if (error instanceof SetupError) return error.message;
  const {
    code = "",
    syscall,
    message,
  } = /** @type {NodeJS.ErrnoException} */ (error instanceof Error ? error : new Error(String(error)));
  const nextStep =
    NEXT_STEPS[code] ??
    (syscall === undefined
      ? `This is a bug in set-up: please report it with the output of \`node scripts/setup.mjs --trace ${step}\`.`
      : "Correct that path (set-up writes to this clone and to XDG_CACHE_HOME), then run the same command again.");
  return `Set-up failed in the step "${step}": ${message}\n${nextStep}`;
}
