import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";

/**
 * A program that only tests need.
 * @typedef {object} GoProgram
 * @property {string} name
 * @property {string} packagePath as `go install` takes it
 * @property {string} version
 * @property {string} moduleSum the module's content hash, as `go version -m` shows it
 * @property {string} purpose what needs it, at the beginning of a sentence
 */

const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");

/**
 * Where the program is; the first time it is built, once per user and version.
 * @param {GoProgram} program
 * @returns {Promise<string>}
 */
export async function provideGoProgram(program) {
  const { name, version, purpose } = program;
  const target = join(cacheDirectory, name, version, name);
  if (isProgram(target)) return target;
  if (findProgram("go") === undefined) {
    throw new CommandError(`${purpose} need Go, to build ${name} with; see the README for how to install it.`);
  }
  mkdirSync(dirname(target), { recursive: true });
  const onWait = () => console.error(`  ▸ Waiting for somebody else to build ${name}`);
  await withLock(
    name,
    async () => {
      if (!isProgram(target)) await build(program, target);
    },
    onWait,
  );
  return target;
}

/**
 * @param {GoProgram} program
 * @param {string} target
 */
async function build({ name, packagePath, version, moduleSum }, target) {
  const directory = mkdtempSync(join(dirname(target), ".build-"));
  try {
    let packages = 0;
    await runCommand({
      title: `Building ${name} ${version} (once)`,
      argv: ["go", "install", "-v", "-trimpath", "-ldflags", "-s -w", `${packagePath}@${version}`],
      cwd: directory,
      env: { GOBIN: directory, CGO_ENABLED: "0", GOFLAGS: "", GOOS: "", GOARCH: "", GOWORK: "off" },
      describe: (line) => (line.startsWith("go: ") ? line.slice(4) : `${++packages} packages compiled`),
      hint: "Check the network and `go env GOPROXY`, then run the same command again.",
    });
    const built = join(directory, name);
    if (!outputOf("go", ["version", "-m", built]).includes(`${version}\t${moduleSum}`)) {
      throw new CommandError(`The ${name} that Go fetched is not the pinned one (${moduleSum}); it is not used.`);
    }
    renameSync(built, target);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
