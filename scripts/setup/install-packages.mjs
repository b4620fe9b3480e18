import { runCommand } from "./command.mjs";
import { outputOf } from "./output-of.mjs";

/**
 * Installs packages of Debian, as root.
 * @param {readonly string[]} names
 */
export async function installPackages(names) {
  const common = {
    cwd: "/",
    env: { DEBIAN_FRONTEND: "noninteractive" },
    hint: "Check the network and /etc/apt/sources.list, then run the same command again.",
  };
  await runCommand({ ...common, title: "Reading the list of packages", argv: ["apt-get", "update"] });
  const argv = /** @type {const} */ (["apt-get", "install", "-y", "--no-install-recommends"]);
  await runCommand({ ...common, title: `Installing ${names.join(", ")}`, argv: [...argv, ...names] });
}

/**
 * Those of them that are not there.
 * @param {readonly string[]} names
 */
export async function installMissingPackages(names) {
  // dpkg tells the version of one that is installed.
  const missing = names.filter((name) => !/\t./.test(outputOf("dpkg-query", ["-W", name])));
  if (missing.length > 0) await installPackages(missing);
}
