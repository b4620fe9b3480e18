import { join } from "node:path";
import { faultOf, libraryPath, planTool, provideTool, toolRoot } from "./debian-tool.mjs";
import { findAnywhere, pathWith } from "./programs.mjs";

/**
 * Docker's programs, and the environment they need.
 * @typedef {object} Docker
 * @property {string} docker
 * @property {string} dockerd
 * @property {NodeJS.ProcessEnv} env
 */

/** @type {import("./debian-tool.mjs").DebianTool} */
const engine = {
  name: "docker.io",
  title: "Docker Engine",
  purpose: "to test containers.",
  // Newer releases of Debian have the client in a separate package.
  packages: (apt) => ["docker.io", ...(apt.candidate("docker-cli") === undefined ? [] : ["docker-cli"])],
  programs: ["usr/sbin/dockerd", "usr/bin/docker", "usr/bin/containerd", "usr/sbin/runc"],
  install: { debian: "docker.io", fedora: "moby-engine", arch: "docker", suse: "docker" },
  seconds: 20,
};
const root = toolRoot(engine);

export function planDocker() {
  return planTool(engine, findInstalled()?.dockerd);
}

/**
 * The machine's own Docker Engine, or Debian's in the cache.
 * @returns {Promise<Docker>}
 */
export async function provideDocker() {
  const installed = findInstalled();
  if (installed !== undefined) return installed;
  await provideTool(engine);
  const directories = [join(root, "usr/sbin"), join(root, "usr/bin")];
  const env = { ...process.env, PATH: pathWith(directories), LD_LIBRARY_PATH: libraryPath(root) };
  return { docker: join(root, "usr/bin/docker"), dockerd: join(root, "usr/sbin/dockerd"), env };
}

/** @returns {Docker | undefined} */
function findInstalled() {
  const docker = findAnywhere("docker");
  const dockerd = findAnywhere("dockerd");
  if (docker === undefined || dockerd === undefined || faultOf(dockerd) !== undefined) return undefined;
  return { docker, dockerd, env: { ...process.env, PATH: pathWith([]) } };
}
