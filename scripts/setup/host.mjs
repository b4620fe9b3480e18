import { textOf } from "./programs.mjs";

/** The oldest Node that runs set-up; everything else runs on the Node that npm installs. */
const OLDEST_NODE = 20;

/**
 * What every step needs.
 * @param {{ needsRoot: boolean }} options
 * @returns {import("./plan.mjs").Problem[]}
 */
export function findHostProblems({ needsRoot }) {
  if (process.platform !== "linux") return [notLinux(process.platform)];
  const problems = [];
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
    problems.push({
      missing: `Node.js ${OLDEST_NODE} or newer; this is ${process.version} at ${process.execPath}.`,
      remedy: `Install a newer one from https://nodejs.org/en/download, then run: ${ownCommand()}`,
    });
  }
  if (process.arch !== "x64" && process.arch !== "arm64") {
    problems.push({
      missing: `An x86-64 or arm64 processor; this one is ${process.arch}.`,
      remedy: "Use another machine.",
    });
  }
  if (needsRoot && process.getuid?.() !== 0) {
    problems.push({
      missing: "Root: gVisor sandboxes need it for their namespaces and cgroups.",
      remedy: `Run: sudo env "PATH=$PATH" ${ownCommand()}`,
    });
  }
  return problems;
}

/**
 * The command that installs packages on this distribution.
 * @param {{ debian: string, fedora: string, arch: string, suse: string }} packages
 */
export function installCommand(packages) {
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  const family = distributionFamily(textOf("/etc/os-release"));
  if (family === "debian") return `Run: ${sudo}apt-get update && ${sudo}apt-get install -y ${packages.debian}`;
  if (family === "fedora") return `Run: ${sudo}dnf install -y ${packages.fedora}`;
  if (family === "arch") return `Run: ${sudo}pacman -S --needed --noconfirm ${packages.arch}`;
  if (family === "suse") return `Run: ${sudo}zypper install -y ${packages.suse}`;
  return `Install the packages that Debian calls: ${packages.debian}`;
}

/**
 * @param {string} osRelease the text of /etc/os-release
 * @returns {"debian" | "fedora" | "arch" | "suse" | undefined}
 */
export function distributionFamily(osRelease) {
  const words = [...osRelease.matchAll(/^(?:ID|ID_LIKE)=["']?([^"'\n]*)["']?$/gm)]
    .flatMap((match) => (match[1] ?? "").split(" "))
    .flatMap((word) => (word === "rhel" || word === "centos" ? ["fedora"] : word === "ubuntu" ? ["debian"] : [word]));
  if (words.includes("debian")) return "debian";
  if (words.includes("fedora")) return "fedora";
  if (words.includes("arch")) return "arch";
  return words.some((word) => word.includes("suse")) ? "suse" : undefined;
}

/** How the user started this set-up. */
function ownCommand() {
  const script = process.env["npm_lifecycle_event"];
  if (script === undefined) return "node scripts/setup.mjs";
  return script === "start" || script === "test" ? `npm ${script}` : `npm run ${script}`;
}

/**
 * @param {string} platform
 * @returns {import("./plan.mjs").Problem}
 */
function notLinux(platform) {
  const machine =
    platform === "win32"
      ? "Run: wsl --install -d Debian\nthen clone Sandpiper inside it."
      : "Run: limactl start --name=sandpiper template://debian-12 && limactl shell sandpiper\nthen clone Sandpiper inside it.";
  return { missing: `Linux; this is ${platform}.`, remedy: machine };
}
