import { readdirSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { hasDebianPackages, isListed } from "./debian-packages.mjs";
import { isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { findAnywhere, pathWith, unpackedRoot, unpackPackages } from "./unpacked-packages.mjs";

/**
 * Docker's programs, and the environment they need.
 * @typedef {object} Docker
 * @property {string} docker
 * @property {string} dockerd
 * @property {NodeJS.ProcessEnv} env
 */

const root = unpackedRoot("docker.io");
const INSTALL = { debian: "docker.io", fedora: "moby-engine", arch: "docker", suse: "docker" };

/** @returns {import("./plan.d.ts").Plan} */
export function planDocker() {
  const found = findInstalled() ?? findUnpacked();
  if (found !== undefined) return { detail: found.dockerd, problems: [] };
  if (hasDebianPackages()) return { detail: root, problems: [], work: async () => void (await provideDocker()) };
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
  if (!hasDebianPackages()) throw new CommandError(`Docker Engine (dockerd) is not there. ${installCommand(INSTALL)}`);
  // Newer releases of Debian have the client in a package of its own.
  await unpackPackages("docker.io", () => ["docker.io", ...(isListed("docker-cli") ? ["docker-cli"] : [])]);
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
