import { readdirSync } from "node:fs";
import { join } from "node:path";
import { hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { planDebianPrograms } from "./debian-programs.mjs";
import { libraryPath } from "./debian-tool.mjs";
import { cacheDirectory } from "./directories.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";
import { isProgram } from "./programs.mjs";
import { reportWaiting } from "./progress.mjs";

/** The clients that tests run inside of sandboxes, and what makes the tests' mirrors, with their packages. */
const PROGRAMS = {
  curl: "curl",
  git: "git",
  ssh: "openssh-client",
  "ssh-keygen": "openssh-client",
  pip3: "python3-pip",
  psql: "postgresql-client",
  openssl: "openssl",
  "dpkg-deb": "dpkg",
};

/** Servers are unpacked into the cache: their packages would start daemons of the machine. */
const serversRoot = join(cacheDirectory, "network-servers");

/** @returns {import("./plan.mjs").Plan} */
export function planNetwork() {
  // Sandboxes see the machine's /usr, and nothing of a home directory.
  const missing = Object.entries(PROGRAMS).filter(([program]) => !isProgram(join("/usr/bin", program)));
  const clients = planDebianPrograms([...new Set(missing.map(([, name]) => name))], "to test the network.");
  const hasServers = findServer("sshd") !== undefined && findServer("postgres") !== undefined;
  if (missing.length === 0 && hasServers) return { detail: Object.keys(PROGRAMS).join(", "), problems: [] };
  const problems = missing.length === 0 ? [] : [...clients.problems];
  if (!hasServers && !hasDebianPackages()) {
    const names = { debian: "openssh-server postgresql", fedora: "openssh-server postgresql-server" };
    const remedy = installCommand({ ...names, arch: "openssh postgresql", suse: "openssh postgresql-server" });
    problems.push({ missing: "sshd and PostgreSQL, to test the network.", remedy });
  }
  return {
    detail: serversRoot,
    problems,
    announcement: { name: "programs to test the network", seconds: 30 },
    work: async () => {
      if (missing.length > 0) await clients.work?.();
      if (!hasServers)
        await withLock("network-servers", unpackServers, () => reportWaiting("network", "unpack sshd and PostgreSQL"));
    },
  };
}

/** PostgreSQL's server, and the tree that has it: the machine's, or one that only root may read. */
export function postgresProgram() {
  return foundServer("postgres");
}

export function sshdProgram() {
  return foundServer("sshd");
}

/** @param {"sshd" | "postgres"} name */
function foundServer(name) {
  const found = findServer(name);
  if (found === undefined) throw new Error(`${name} is missing: run "npm run setup network"`);
  return found;
}

/**
 * The machine's own server, or Debian's in the cache.
 * @param {"sshd" | "postgres"} name
 */
function findServer(name) {
  for (const root of ["/", serversRoot]) {
    const path = name === "sshd" ? join(root, "usr/sbin/sshd") : findPostgres(join(root, "usr/lib/postgresql"));
    if (path === undefined || !isProgram(path)) continue;
    const env = root === "/" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath(root) };
    return { path, env, root };
  }
  return undefined;
}

/** Debian keeps each version in a directory of its own. @param {string} directory */
function findPostgres(directory) {
  try {
    const versions = readdirSync(directory).map((version) => join(directory, version, "bin/postgres"));
    return versions.filter(isProgram).at(-1);
  } catch {
    return undefined;
  }
}

async function unpackServers() {
  if (findServer("sshd") !== undefined && findServer("postgres") !== undefined) return;
  await withPackages(
    {
      part: "network",
      title: "Downloading sshd and PostgreSQL (Debian's)",
      names: (apt) => {
        const [postgresql = "postgresql"] = apt.dependencies("postgresql", apt.candidate("postgresql") ?? "");
        return ["openssh-server", postgresql];
      },
      dependencies: "beyond base",
    },
    async (root) => publish(root, serversRoot),
  );
}
