import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { hasDebianPackages, isListed } from "./debian-packages.mjs";
import { isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { findAnywhere, pathWith, unpackedRoot, unpackPackages } from "./unpacked-packages.mjs";

/**
 * @typedef {object} Podman
 * @property {string} podman where it is, or will be once what is unpacked is laid over /usr
 * @property {string | undefined} runc a runtime to use instead of its own choice
 * @property {string | undefined} usr what has to be laid under /usr: Podman finds its helpers at fixed paths
 * @property {NodeJS.ProcessEnv} env
 */

const root = unpackedRoot("podman");
const INSTALL = { debian: "podman", fedora: "podman", arch: "podman", suse: "podman" };

/** @returns {import("./plan.d.ts").Plan} */
export function planPodman() {
  const found = findInstalled() ?? findUnpacked();
  if (found !== undefined) return { detail: found.usr ?? found.podman, problems: [] };
  if (hasDebianPackages()) return { detail: root, problems: [], work: async () => void (await providePodman()) };
  const missing = "Podman, to test containers with.";
  return { detail: "missing", problems: [{ missing, remedy: installCommand(INSTALL) }] };
}

/**
 * The machine's own Podman, or Debian's unpacked into the cache, as Docker is.
 * @returns {Promise<Podman>}
 */
export async function providePodman() {
  const found = findInstalled() ?? findUnpacked();
  if (found !== undefined) return found;
  if (!hasDebianPackages()) throw new CommandError(`Podman is not there. ${installCommand(INSTALL)}`);
  // Its usual runtime refuses machines that have both versions of cgroups. Older releases of Debian make networks otherwise.
  const networks = () => (isListed("netavark") ? ["netavark", "iptables"] : []);
  await unpackPackages("podman", () => ["podman", "runc", ...networks()]);
  const unpacked = findUnpacked();
  if (unpacked !== undefined) return unpacked;
  throw new CommandError(`${root} has no whole Podman: remove it, and run the same command again.`);
}

/** @returns {Podman | undefined} */
function findInstalled() {
  const podman = findAnywhere("podman");
  if (podman === undefined) return undefined;
  return { podman, runc: findAnywhere("runc"), usr: undefined, env: { ...process.env, PATH: pathWith([]) } };
}

/** @returns {Podman | undefined} */
function findUnpacked() {
  const usr = join(root, "usr");
  if (!isProgram(join(usr, "bin/podman")) || !isProgram(join(usr, "sbin/runc"))) return undefined;
  const env = { ...process.env, PATH: pathWith([]) };
  return { podman: "/usr/bin/podman", runc: "/usr/sbin/runc", usr, env };
}
