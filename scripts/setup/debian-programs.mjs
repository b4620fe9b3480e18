import { APT_HINT } from "./apt.mjs";
import { runCommand } from "./command.mjs";
import { installCommand } from "./host.mjs";
import { findProgram } from "./programs.mjs";

/**
 * The step that installs packages of Debian which start no daemon.
 * @param {readonly string[]} packages those that are missing
 * @param {string} purpose the end of the sentence "…, to test several nodes."
 * @returns {import("./plan.mjs").Plan}
 */
export function planDebianPrograms(packages, purpose) {
  const detail = packages.join(", ");
  if (findProgram("apt-get") !== undefined && process.getuid?.() === 0) {
    const announcement = { name: detail, seconds: 10 };
    return { detail, problems: [], announcement, work: () => installPackages(packages) };
  }
  const names = packages.join(" ");
  const remedy = installCommand({ debian: names, fedora: names, arch: names, suse: names });
  return { detail, problems: [{ missing: `${detail}, ${purpose}`, remedy }] };
}

/** @param {readonly string[]} names */
async function installPackages(names) {
  const common = { cwd: "/", env: { DEBIAN_FRONTEND: "noninteractive" }, hint: APT_HINT };
  await runCommand({ ...common, title: "Reading Debian's package lists", argv: ["apt-get", "update"] });
  const argv = /** @type {const} */ (["apt-get", "install", "-y", "--no-install-recommends"]);
  await runCommand({ ...common, title: `Installing ${names.join(", ")}`, argv: [...argv, ...names] });
}
