import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { hasDebianPackages } from "./debian-packages.mjs";
import { libraryPath, provideTool, toolRoot } from "./debian-tool.mjs";
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

/** For machines without a suitable Python. @type {import("./debian-tool.mjs").DebianTool} */
const tool = {
  name: "python3-venv",
  title: "Python",
  purpose: "to test the Python client with.",
  packages: () => ["python3-venv"],
  programs: ["usr/bin/python3"],
  install: { debian: "python3 python3-venv", fedora: "python3", arch: "python", suse: "python3" },
  seconds: 15,
};

/**
 * The virtual environment in which the tests of the Python client run.
 * @returns {import("./plan.mjs").Plan}
 */
export function planPython() {
  const detail = pythonPath();
  if (works(detail)) return { detail, problems: [] };
  const problems = findPython() === undefined && !hasDebianPackages() ? [pythonProblem()] : [];
  return { detail, problems, announcement: { name: "Python packages", seconds: 20 }, work: provide };
}

/** The Python of the virtual environment; it exists after set-up. */
export function pythonPath() {
  const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  return join(PARENT, version, "bin/python");
}

/** What the environment's Python needs to run. @returns {Record<string, string>} */
export function pythonEnv() {
  const python = pythonPath();
  const isUnpacked = existsSync(python) && realpathSync(python).startsWith(`${toolRoot(tool)}/`);
  return isUnpacked ? unpackedEnv() : {};
}

function unpackedEnv() {
  return { LD_LIBRARY_PATH: libraryPath(toolRoot(tool)) };
}

/** A Python of this machine that is new enough and can create virtual environments. */
function findPython() {
  return CANDIDATES.map(findProgram).find((program) => {
    if (program === undefined) return false;
    const minor = outputOf(program, ["-c", "import ensurepip, sys, venv; print(*sys.version_info[:2])"]);
    return Number(/^3 (\d+)/.exec(minor)?.[1] ?? 0) >= OLDEST_MINOR;
  });
}

/** @returns {import("./plan.mjs").Problem} */
function pythonProblem() {
  return {
    missing: `Python 3.${OLDEST_MINOR} or newer with venv, ${tool.purpose}`,
    remedy: installCommand(tool.install),
  };
}

async function provide() {
  await withLock("python-client", install, () => reportWaiting("python", "install the Python packages"));
}

async function install() {
  const python = pythonPath();
  if (works(python)) return;
  const own = findPython();
  if (own === undefined) await provideTool(tool);
  const env = own === undefined ? unpackedEnv() : {};
  // The caller holds the lock, so an environment that does not work belongs to a set-up that was killed.
  const directory = join(python, "../..");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(PARENT, { recursive: true });
  const hint = "Check the network and pip's index setting, then run the same command again.";
  const run = (/** @type {readonly [string, ...string[]]} */ argv) =>
    runCommand({ title: "Installing Python packages", argv, cwd: PARENT, env, hint });
  const options = ["install", "--quiet", "--disable-pip-version-check", "-r", requirements];
  if (own === undefined) {
    // Debian's ensurepip searches for pip in /usr only.
    await run([join(toolRoot(tool), "usr/bin/python3"), "-m", "venv", "--without-pip", directory]);
    await run([python, join(unpackedPip(), "pip"), ...options]);
  } else {
    await run([own, "-m", "venv", directory]);
    await run([python, "-m", "pip", ...options]);
  }
  if (works(python)) return;
  throw new SetupError("The Python packages were installed and do not work.", `Remove ${directory}, and try again.`);
}

/** A wheel, which Python can run. */
function unpackedPip() {
  const wheels = join(toolRoot(tool), "usr/share/python-wheels");
  const name = readdirSync(wheels).find((each) => /^pip-.*\.whl$/.test(each));
  if (name === undefined)
    throw new SetupError(`Debian's python3-venv has no pip in ${wheels}.`, installCommand(tool.install));
  return join(wheels, name);
}

/** @param {string} python */
function works(python) {
  if (!isProgram(python)) return false;
  const env = { ...process.env, ...pythonEnv() };
  return spawnSync(python, ["-c", "import mypy, pytest, websockets"], { env, stdio: "ignore" }).status === 0;
}
