import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { outputOf } from "./programs.mjs";

export const APT_HINT =
  "Fix what apt-get reports above (the network, /etc/apt/sources.list*, a full disk), then run the same command again.";

/**
 * Asks apt as a machine on which no package is installed. What apt chooses then depends on the package lists alone, not on
 * what this machine has, had, or has half-removed.
 */
export class Apt {
  /** @type {readonly string[]} */
  #options;

  /** @param {string} directory for apt's files; the caller removes it */
  constructor(directory) {
    const status = join(directory, "status");
    writeFileSync(status, "");
    this.#options = [
      `Dir::State::status=${status}`,
      // apt keeps the lists and the status in one index; the machine's own index stays as it is.
      `Dir::Cache::pkgcache=${join(directory, "pkgcache.bin")}`,
      `Dir::Cache::srcpkgcache=${join(directory, "srcpkgcache.bin")}`,
      "APT::Install-Recommends=false",
      "APT::Install-Suggests=false",
    ].flatMap((option) => ["-o", option]);
  }

  /**
   * The newest version that the package lists offer.
   * @param {string} name
   * @returns {string | undefined}
   */
  candidate(name) {
    const policy = outputOf("apt-cache", [...this.#options, "policy", name]);
    return /^\s+Candidate: (?!\(none\))(\S+)$/m.exec(policy)?.[1];
  }

  /** @param {string} name @param {string} version */
  dependencies(name, version) {
    const output = outputOf("apt-cache", [...this.#options, "depends", `${name}=${version}`]);
    return [...output.matchAll(/^\s+Depends: (\S+)$/gm)].map(([, dependency = ""]) => dependency);
  }

  /** Updates the package lists. @param {string} title */
  async update(title) {
    await this.run({ title, args: ["update"] });
  }

  /**
   * The packages and all that they need, as `name=version`.
   * @param {readonly string[]} names
   */
  async closure(names) {
    const output = await this.run({ title: "Choosing packages", args: ["install", "--simulate", ...names] });
    return output.flatMap((line) => {
      const [, name, version] = /^Inst (\S+) \((\S+) /.exec(line) ?? [];
      return name === undefined ? [] : [`${name}=${version}`];
    });
  }

  /**
   * What a program of these packages needs beyond apt and the packages that Debian calls essential. Every machine that runs
   * apt-get has those, and a second C library would not fit the loader of the first.
   * @param {readonly string[]} names
   */
  async closureBeyondBase(names) {
    // The alternative, usrmerge, would bring all of Perl.
    const base = ["?essential", ...(this.candidate("usr-is-merged") === undefined ? [] : ["usr-is-merged"])];
    const present = new Set(await this.closure(base));
    return (await this.closure([...base, ...names])).filter((entry) => !present.has(entry));
  }

  /**
   * How much a download of these packages is.
   * @param {readonly string[]} entries
   */
  async downloadBytes(entries) {
    const output = await this.run({ title: "Measuring the download", args: ["download", "--print-uris", ...entries] });
    // 'http://…/runc_1.1.5_amd64.deb' runc_1.1.5_amd64.deb 2709968 SHA256:…
    return output.reduce((sum, line) => sum + Number(/^'\S+' \S+ (\d+) /.exec(line)?.[1] ?? 0), 0);
  }

  /**
   * Runs apt-get.
   * @param {{ title: string, args: readonly string[], cwd?: string, work?: import("./progress.mjs").Work }} command
   * @returns {Promise<readonly string[]>} the lines of its output
   */
  async run({ title, args, cwd = "/", work }) {
    /** @type {string[]} */
    const lines = [];
    await runCommand({
      title,
      argv: ["apt-get", ...this.#options, ...args],
      cwd,
      env: { DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" },
      describe: (line) => void lines.push(line),
      work,
      hint: APT_HINT,
    });
    return lines;
  }
}
