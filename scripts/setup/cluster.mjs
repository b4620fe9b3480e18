import { findProgram, isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { installPackages } from "./install-packages.mjs";

/** What the tests of several nodes run: a load balancer, and networks of their own. */
const PROGRAMS = { haproxy: "haproxy", ip: "iproute2" };

/** @returns {import("./plan.d.ts").Plan} */
export function planCluster() {
  const missing = Object.entries(PROGRAMS).filter(([program]) => !isThere(program));
  if (missing.length === 0) return { detail: Object.keys(PROGRAMS).join(", "), problems: [] };
  const packages = missing.map(([, name]) => name);
  const detail = packages.join(", ");
  if (findProgram("apt-get") !== undefined && process.getuid?.() === 0) {
    return { detail, problems: [], work: () => installPackages(packages) };
  }
  const names = packages.join(" ");
  const remedy = installCommand({ debian: names, fedora: names, arch: names, suse: names });
  return { detail, problems: [{ missing: `${detail}, to test several nodes with.`, remedy }] };
}

/** @param {string} program */
function isThere(program) {
  // A root shell that was not a login has no sbin on its PATH.
  return findProgram(program) !== undefined || isProgram(`/usr/sbin/${program}`);
}
