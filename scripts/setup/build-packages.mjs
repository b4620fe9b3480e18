import { runCommand } from "./command.mjs";
import { ensureListed } from "./debian-packages.mjs";
import { outputOf } from "./output-of.mjs";

const HINT = "Check the network and /etc/apt/sources.list, then run the same command again.";

/**
 * Installs the packages that something is built with, of those that are not there.
 * @param {readonly string[]} names
 */
export async function installBuildPackages(names) {
  // With its version, if it is installed.
  const missing = names.filter((name) => !/\t./.test(outputOf("dpkg-query", ["-W", name])));
  if (missing.length === 0) return;
  await ensureListed(missing);
  await runCommand({
    title: `Installing ${missing.join(", ")}, to build with`,
    argv: ["apt-get", "install", "-y", "--no-install-recommends", ...missing],
    cwd: "/",
    env: { DEBIAN_FRONTEND: "noninteractive" },
    hint: HINT,
  });
}
