import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { candidateVersion } from "./debian-packages.mjs";
import { outputOf } from "./output-of.mjs";

const HINT = "Check the network and /etc/apt/sources.list, then run the same command again.";
/** By default apt trusts what its own lists name; a list of one's own has to name it too. */
const KEYRINGS = ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"];

/**
 * Fetches the sources of a program, of the version that apt would install, with Debian's changes to them.
 * @param {object} options
 * @param {string} options.part
 * @param {string} options.source what Debian calls the sources
 * @param {string} options.binary a package that is built of them
 * @param {string} options.directory empty; what is fetched goes there, too
 * @returns {Promise<string>} the directory with the sources
 */
export async function fetchSource({ part, source, binary, directory }) {
  const candidate = candidateVersion(binary);
  if (candidate === undefined) throw new CommandError(`apt knows no package ${binary}.`);
  const list = join(directory, "sources.list");
  const lists = join(directory, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  writeFileSync(list, sourceLines(binary, candidate));
  const options = [
    ...["-o", `Dir::Etc::SourceList=${list}`, "-o", "Dir::Etc::SourceParts=/dev/null"],
    ...["-o", `Dir::State::Lists=${lists}`, "-o", "APT::Sandbox::User=root"],
  ];
  const common = { cwd: directory, env: { DEBIAN_FRONTEND: "noninteractive" }, hint: HINT };
  await runCommand({ ...common, title: "Reading the list of sources", argv: ["apt-get", ...options, "update"] });
  // Packages that were only built anew have another version than their sources.
  const version = candidate.replace(/\+b\d+$/, "");
  await runCommand({
    ...common,
    title: `Downloading the sources of ${source} ${version}`,
    argv: ["apt-get", ...options, "source", "--download-only", `${source}=${version}`],
    work: { part, status: "downloading" },
  });
  return await unpack(part, directory);
}

/** From where the package itself would come. @param {string} binary @param {string} version */
function sourceLines(binary, version) {
  const policy = outputOf("apt-cache", ["policy", binary]).split("\n");
  const start = policy.findIndex((line) => line.trim().replace("*** ", "").startsWith(`${version} `));
  const places = [];
  for (const line of policy.slice(start + 1)) {
    const [, site, suite, component] = /^\s+-?\d+ (\S+:\/\/\S+) ([^\s/]+)\/(\S+) \S+ Packages$/.exec(line) ?? [];
    if (site === undefined) break;
    places.push(`${site} ${suite} ${component}`);
  }
  if (places.length === 0) throw new CommandError(`apt does not say where ${binary} ${version} comes from.`);
  const keyring = KEYRINGS.find(existsSync);
  const signed = keyring === undefined ? "" : `[signed-by=${keyring}] `;
  return places.map((place) => `deb-src ${signed}${place}\n`).join("");
}

/** @param {string} part @param {string} directory */
async function unpack(part, directory) {
  const files = readdirSync(directory);
  const original = files.find((name) => name.includes(".orig.tar."));
  const changes = files.find((name) => name.includes(".debian.tar."));
  if (original === undefined || changes === undefined) throw new CommandError(`${directory} has no sources in it.`);
  const sources = join(directory, "sources");
  mkdirSync(sources);
  const common = { cwd: sources, hint: "Look whether the disk is full, then run the same command again." };
  const work = /** @type {const} */ ({ part, status: "unpacking" });
  for (const [name, ...flags] of /** @type {[string, ...string[]][]} */ ([
    [original, "--strip-components=1"],
    [changes],
  ])) {
    await runCommand({ ...common, title: `Unpacking ${name}`, argv: ["tar", "-xf", join("..", name), ...flags], work });
  }
  const script = 'for name in "$@"; do echo "$name"; patch -p1 --silent -i "debian/patches/$name" || exit 1; done';
  await runCommand({
    ...common,
    title: "Applying Debian's changes",
    argv: ["sh", "-c", script, "sh", ...patchesOf(sources)],
    describe: (line) => line,
    work,
  });
  return sources;
}

/** In their order. @param {string} sources */
function patchesOf(sources) {
  const lines = readFileSync(join(sources, "debian/patches/series"), "utf8").split("\n");
  return lines.map((line) => line.replace(/#.*/, "").trim().split(" ")[0] ?? "").filter((name) => name !== "");
}
