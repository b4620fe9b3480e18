import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";

/**
 * Docker's programs, and the environment they need.
 * @typedef {object} Docker
 * @property {string} docker
 * @property {string} dockerd
 * @property {NodeJS.ProcessEnv} env
 */

const root = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/docker.io");
/** A root shell that was not a login has no sbin on its PATH. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const INSTALL = { debian: "docker.io", fedora: "moby-engine", arch: "docker", suse: "docker" };
const APT_HINT = "Check the network and /etc/apt/sources.list, then run the same command again.";

/** @returns {import("./plan.d.ts").Plan} */
export function planDocker() {
  const found = findInstalled() ?? findUnpacked();
  if (found !== undefined) return { detail: found.dockerd, problems: [] };
  if (canUnpack()) return { detail: root, problems: [], work: async () => void (await provideDocker()) };
  const missing = "Docker Engine (dockerd), to test containers with.";
  return { detail: "missing", problems: [{ missing, remedy: installCommand(INSTALL) }] };
}

/**
 * The machine's own Docker Engine, or Debian's docker.io unpacked into the cache. Unpacked, not installed: an
 * installation would start a system-wide daemon on the user's machine for the sake of tests and benchmarks.
 * @returns {Promise<Docker>}
 */
export async function provideDocker() {
  const found = findInstalled() ?? findUnpacked();
  if (found !== undefined) return found;
  if (!canUnpack()) throw new CommandError(`Docker Engine (dockerd) is not there. ${installCommand(INSTALL)}`);
  mkdirSync(dirname(root), { recursive: true });
  const onWait = () => console.error("  ▸ Waiting for somebody else to unpack Docker");
  await withLock("docker.io", async () => (existsSync(root) ? undefined : unpack()), onWait);
  const unpacked = findUnpacked();
  if (unpacked !== undefined) return unpacked;
  throw new CommandError(`${root} has no whole Docker Engine: remove it, and run the same command again.`);
}

/** @returns {Docker | undefined} */
function findInstalled() {
  const docker = findAnywhere("docker");
  const dockerd = findAnywhere("dockerd");
  if (docker === undefined || dockerd === undefined) return undefined;
  return { docker, dockerd, env: { ...process.env, PATH: pathWith([]) } };
}

/** @returns {Docker | undefined} */
function findUnpacked() {
  const dockerd = join(root, "usr/sbin/dockerd");
  const docker = join(root, "usr/bin/docker");
  if (!isProgram(dockerd) || !isProgram(docker)) return undefined;
  const libraries = readdirSync(join(root, "usr/lib")).map((name) => join(root, "usr/lib", name));
  const env = {
    ...process.env,
    PATH: pathWith([join(root, "usr/sbin"), join(root, "usr/bin")]),
    LD_LIBRARY_PATH: libraries.join(":"),
  };
  return { docker, dockerd, env };
}

/** @param {string} name */
function findAnywhere(name) {
  return findProgram(name) ?? SYSTEM_DIRECTORIES.map((directory) => join(directory, name)).find(isProgram);
}

/** @param {readonly string[]} directories */
function pathWith(directories) {
  return [...directories, process.env["PATH"] ?? "", ...SYSTEM_DIRECTORIES].join(":");
}

function canUnpack() {
  return process.getuid?.() === 0 && findProgram("apt-get") !== undefined && findProgram("dpkg-deb") !== undefined;
}

async function unpack() {
  const staging = mkdtempSync(`${root}.`);
  try {
    const archives = join(staging, "archives");
    mkdirSync(join(archives, "partial"), { recursive: true });
    if (!isListed("docker.io")) await apt("Reading the list of packages", ["update"]);
    await download(archives).catch(async () => {
      // The list names packages that the server has replaced since.
      await apt("Reading the list of packages again", ["update"]);
      await download(archives);
    });
    const files = readdirSync(archives).filter((name) => name.endsWith(".deb"));
    for (const file of files) {
      await runCommand({
        title: `Unpacking ${file.split("_")[0]}`,
        argv: ["dpkg-deb", "--extract", join(archives, file), join(staging, "root")],
        cwd: staging,
        hint: "Look whether the disk is full, then run the same command again.",
      });
    }
    renameSync(join(staging, "root"), root);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** @param {string} archives */
async function download(archives) {
  // Newer releases of Debian have the client in a package of its own.
  const packages = ["docker.io", ...(isListed("docker-cli") ? ["docker-cli"] : [])];
  const flags = ["--download-only", "--yes", "--no-install-recommends", "-o", `Dir::Cache::archives=${archives}`];
  await apt("Downloading Debian's docker.io (once; nothing is installed)", ["install", ...flags, ...packages]);
}

/**
 * @param {string} title
 * @param {readonly string[]} args
 */
function apt(title, args) {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  return runCommand({ title, argv: ["apt-get", ...args], cwd: "/", env, hint: APT_HINT });
}

/** @param {string} name */
function isListed(name) {
  return outputOf("apt-cache", ["show", name]) !== "";
}
