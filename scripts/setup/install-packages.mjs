import { runCommand } from "./command.mjs";

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
