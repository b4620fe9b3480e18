import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { cacheDirectory, repoDirectory } from "./directories.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";
import { findProgram, isProgram, outputOf } from "./programs.mjs";
import { reportWaiting } from "./progress.mjs";
import { SetupError } from "./setup-error.mjs";

/** The oldest minor version of Python 3 that the client supports. */
const OLDEST_MINOR = 10;
const CANDIDATES = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
const requirements = join(repoDirectory, "clients/python/requirements.txt");
const PARENT = join(cacheDirectory, "python-client");

/**
 * The virtual environment in which the tests of the Python client run.
 * @returns {import("./plan.mjs").Plan}
 */
export function planPython() {
  const detail = pythonPath();
  if (works(detail)) return { detail, problems: [] };
  const problems = findPython() === undefined ? [pythonProblem()] : [];
  return { detail, problems, announcement: { name: "Python packages", seconds: 20 }, work: provide };
}

/** The Python of the virtual environment; it exists after set-up. */
export function pythonPath() {
  const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  return join(PARENT, version, "bin/python");
}

/** A Python that is new enough and can create virtual environments. */
function findPython() {
  return CANDIDATES.map(findProgram).find((program) => {
    if (program === undefined) return false;
    const minor = outputOf(program, ["-c", "import ensurepip, sys, venv; print(*sys.version_info[:2])"]);
    return Number(/^3 (\d+)/.exec(minor)?.[1] ?? 0) >= OLDEST_MINOR;
  });
}

/** @returns {import("./plan.mjs").Problem} */
function pythonProblem() {
  const packages = { debian: "python3 python3-venv", fedora: "python3", arch: "python", suse: "python3" };
  return {
    missing: `Python 3.${OLDEST_MINOR} or newer with venv, to test the Python client with.`,
    remedy: installCommand(packages),
  };
}

async function provide() {
  await withLock("python-client", install, () => reportWaiting("python", "install the Python packages"));
}

async function install() {
  const python = pythonPath();
  if (works(python)) return;
  const base = findPython();
  if (base === undefined) {
    const { missing, remedy } = pythonProblem();
    throw new SetupError(`Missing: ${missing}`, remedy);
  }
  // The caller holds the lock, so an environment that does not work belongs to a set-up that was killed.
  const directory = join(python, "../..");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(PARENT, { recursive: true });
  const hint = "Check the network and pip's index setting, then run the same command again.";
  const run = (/** @type {readonly [string, ...string[]]} */ argv) =>
    runCommand({ title: "Installing Python packages", argv, cwd: PARENT, hint });
  await run([base, "-m", "venv", directory]);
  await run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  if (works(python)) return;
  throw new SetupError("The Python packages were installed and do not work.", `Remove ${directory}, and try again.`);
}

/** @param {string} python */
function works(python) {
  return isProgram(python) && outputOf(python, ["-c", "import mypy, pytest, websockets; print('fine')"]) !== "";
}
