import { APT_HINT } from "./apt.mjs";
import { runCommand } from "./command.mjs";
import { installCommand } from "./host.mjs";
import { findAnywhere, findProgram } from "./programs.mjs";

/** What tests of several nodes run, with its package: a load balancer, and networks. */
const PROGRAMS = { haproxy: "haproxy", ip: "iproute2" };

/** @returns {import("./plan.mjs").Plan} */
export function planCluster() {
  const missing = Object.entries(PROGRAMS).filter(([program]) => findAnywhere(program) === undefined);
  if (missing.length === 0) return { detail: Object.keys(PROGRAMS).join(", "), problems: [] };
  const packages = missing.map(([, name]) => name);
  const detail = packages.join(", ");
  if (findProgram("apt-get") !== undefined && process.getuid?.() === 0) {
    const announcement = { name: detail, seconds: 10 };
    return { detail, problems: [], announcement, work: () => installPackages(packages) };
  }
  const names = packages.join(" ");
  const remedy = installCommand({ debian: names, fedora: names, arch: names, suse: names });
  return { detail, problems: [{ missing: `${detail}, to test several nodes.`, remedy }] };
}

/** @param {readonly string[]} names */
async function installPackages(names) {
  const common = { cwd: "/", env: { DEBIAN_FRONTEND: "noninteractive" }, hint: APT_HINT };
  await runCommand({ ...common, title: "Reading Debian's package lists", argv: ["apt-get", "update"] });
  const argv = /** @type {const} */ (["apt-get", "install", "-y", "--no-install-recommends"]);
  await runCommand({ ...common, title: `Installing ${names.join(", ")}`, argv: [...argv, ...names] });
}
