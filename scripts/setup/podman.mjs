import { join } from "node:path";
import { faultOf, planTool, provideTool, toolRoot } from "./debian-tool.mjs";
import { findAnywhere, pathWith } from "./programs.mjs";

/**
 * @typedef {object} Podman
 * @property {string} podman its path, once `usr` is mounted
 * @property {string | undefined} runc a runtime to use instead of Podman's own choice
 * @property {string | undefined} usr a directory to mount under /usr: Podman finds its helpers at fixed paths
 * @property {NodeJS.ProcessEnv} env
 */

/** @type {import("./debian-tool.mjs").DebianTool} */
const tool = {
  name: "podman",
  title: "Podman",
  purpose: "to test containers.",
  // Podman's default runtime, crun, refuses machines that have both versions of cgroups. Older releases of Debian have no netavark.
  packages: (apt) => ["podman", "runc", ...(apt.candidate("netavark") === undefined ? [] : ["netavark", "iptables"])],
  programs: ["usr/bin/podman", "usr/sbin/runc", "usr/bin/conmon"],
  install: { debian: "podman", fedora: "podman", arch: "podman", suse: "podman" },
  seconds: 15,
};

export function planPodman() {
  return planTool(tool, findInstalled()?.podman);
}

/**
 * The machine's own Podman, or Debian's in the cache.
 * @returns {Promise<Podman>}
 */
export async function providePodman() {
  const installed = findInstalled();
  if (installed !== undefined) return installed;
  await provideTool(tool);
  const env = { ...process.env, PATH: pathWith([]) };
  return { podman: "/usr/bin/podman", runc: "/usr/sbin/runc", usr: join(toolRoot(tool), "usr"), env };
}

/** @returns {Podman | undefined} */
function findInstalled() {
  const podman = findAnywhere("podman");
  if (podman === undefined || faultOf(podman) !== undefined) return undefined;
  return { podman, runc: findAnywhere("runc"), usr: undefined, env: { ...process.env, PATH: pathWith([]) } };
}
