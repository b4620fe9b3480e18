import { spawnSync } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { cacheDirectory } from "./directories.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";
import { reportComplete, reportWaiting } from "./progress.mjs";
import { SetupError } from "./setup-error.mjs";

const RUN_TIMEOUT_MS = 30_000;
const TRIPLETS = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };

/**
 * A program of Debian that set-up unpacks into the cache, with all that it needs. An installation would start system-wide
 * daemons for the sake of tests.
 * @typedef {object} DebianTool
 * @property {string} name of its package, and of its directory in the cache
 * @property {string} title
 * @property {string} purpose the end of the sentence "…, to run virtual machines."
 * @property {(apt: import("./apt.mjs").Apt) => readonly string[]} packages
 * @property {readonly string[]} programs paths below the directory; each of them must answer to --version
 * @property {Parameters<typeof installCommand>[0]} install the packages to install by hand instead
 * @property {number} seconds that the download and the unpacking take
 */

/** @param {DebianTool} tool */
export function toolRoot({ name }) {
  return join(cacheDirectory, name);
}

/** Where the libraries of an unpacked tool are. @param {string} root */
export function libraryPath(root) {
  return join(root, "usr/lib", TRIPLETS[/** @type {"x64"} */ (process.arch)]);
}

/**
 * The step that provides a tool.
 * @param {DebianTool} tool
 * @param {string | undefined} installed where the machine's own is
 * @returns {import("./plan.mjs").Plan}
 */
export function planTool(tool, installed) {
  if (installed !== undefined) return { detail: installed, problems: [] };
  const detail = toolRoot(tool);
  if (findFault(tool, detail) === undefined) return { detail, problems: [] };
  if (hasDebianPackages()) {
    const announcement = { name: tool.title, seconds: tool.seconds };
    return { detail, problems: [], announcement, work: () => provideTool(tool) };
  }
  const missing = `${tool.title}, ${tool.purpose}`;
  return { detail: "missing", problems: [{ missing, remedy: installCommand(tool.install) }] };
}

/** Verified by this process already. @type {Set<string>} */
const verified = new Set();

/**
 * Ensures that the unpacked tool runs. A tool that does not run is removed and downloaded again, once; if the new one
 * does not run either, it is not kept.
 * @param {DebianTool} tool
 * @param {{ root?: string, fetch?: typeof fetchTool }} [options] for tests
 */
export async function provideTool(tool, { root = toolRoot(tool), fetch = fetchTool } = {}) {
  if (verified.has(root)) return;
  const onWait = () => reportWaiting(partOf(tool), `unpack ${tool.title}`);
  await withLock(
    tool.name,
    async () => {
      if (findFault(tool, root) === undefined) return;
      await fetch(tool, async (unpacked) => {
        const fault = findFault(tool, unpacked);
        if (fault !== undefined) {
          const what = `Debian's ${tool.name} was unpacked and does not run here: ${fault}.`;
          throw new SetupError(what, installCommand(tool.install));
        }
        // The old tree goes where the download is removed; programs that run from it keep their open files.
        if (existsSync(root)) renameSync(root, join(dirname(unpacked), "old"));
        publish(unpacked, root);
      });
      reportComplete(partOf(tool), root);
    },
    onWait,
  );
  verified.add(root);
}

/**
 * @param {DebianTool} tool
 * @param {(unpacked: string) => Promise<void>} use
 */
async function fetchTool(tool, use) {
  const { name, title, install, packages } = tool;
  if (!hasDebianPackages()) throw new SetupError(`${title} is not installed.`, installCommand(install));
  await withPackages(
    {
      part: partOf(tool),
      title: `Downloading ${title} (Debian's ${name})`,
      names: packages,
      dependencies: "beyond base",
    },
    use,
  );
}

/** The name of a tool in reports. @param {DebianTool} tool */
function partOf({ name }) {
  return name.split("-")[0] ?? name;
}

/**
 * Why a tree has no working tool, found out by running every program of it.
 * @param {DebianTool} tool
 * @param {string} root
 * @returns {string | undefined}
 */
function findFault({ programs }, root) {
  for (const program of programs) {
    const fault = faultOf(join(root, program), { ...process.env, LD_LIBRARY_PATH: libraryPath(root) });
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/**
 * Why a program does not answer to --version.
 * @param {string} program
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function faultOf(program, env = process.env) {
  const { error, status, signal, stderr } = spawnSync(program, ["--version"], {
    env,
    encoding: "utf8",
    timeout: RUN_TIMEOUT_MS,
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (error === undefined && status === 0) return undefined;
  const words = error?.message ?? (stderr.trim().split("\n")[0] || `it ended with ${status ?? signal}`);
  return `\`${program} --version\` failed: ${words}`;
}
