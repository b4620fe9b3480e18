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
  // One that was removed is still known, as `deinstall ok config-files`.
  const missing = names.filter(
    (name) => !outputOf("dpkg-query", ["-s", name]).includes("\nStatus: install ok installed\n"),
  );
  if (missing.length > 0) await installPackages(missing);
}
