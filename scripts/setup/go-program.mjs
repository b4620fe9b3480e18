import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCommand } from "./command.mjs";
import { cacheDirectory } from "./directories.mjs";
import { withLock } from "./lock.mjs";
import { findProgram, isProgram, outputOf } from "./programs.mjs";
import { reportWaiting } from "./progress.mjs";
import { SetupError } from "./setup-error.mjs";

/** The oldest Go that downloads a newer toolchain when a module requires one. */
const OLDEST_GO = 21;
const BUILD_PREFIX = ".build-";

/**
 * A program that set-up builds from the Go module proxy.
 * @typedef {object} GoProgram
 * @property {string} name
 * @property {string} title
 * @property {string} packagePath as `go install` takes it
 * @property {string} version of the module
 * @property {string} moduleSum the module's content hash, as `go version -m` shows it
 * @property {string} [ldflags]
 * @property {(path: string) => boolean} [runs] whether the new binary works
 */

/** @param {GoProgram} program */
export function goProgramPath({ name, version }) {
  return join(cacheDirectory, name, version, name);
}

/**
 * @param {string} what is to be built
 * @returns {import("./plan.mjs").Problem[]}
 */
export function findGoProblem(what) {
  const go = findProgram("go");
  const found = go === undefined ? undefined : /go1\.(\d+)/.exec(outputOf(go, ["version"]))?.[1];
  if (Number(found ?? 0) >= OLDEST_GO) return [];
  const missing = `Go 1.${OLDEST_GO} or newer, to build ${what} with${found === undefined ? "" : `; ${go} is 1.${found}`}.`;
  const arch = process.arch === "arm64" ? "arm64" : "amd64";
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  const remedy = [
    `Run: curl -fsSL https://go.dev/dl/go1.26.8.linux-${arch}.tar.gz | ${sudo}tar -C /usr/local -xz`,
    "     export PATH=/usr/local/go/bin:$PATH",
  ].join("\n");
  return [{ missing, remedy }];
}

/**
 * Builds the program unless it exists, once per user and version.
 * @param {GoProgram} program
 * @returns {Promise<string>} its path
 */
export async function provideGoProgram(program) {
  const target = goProgramPath(program);
  if (isProgram(target)) return target;
  const [problem] = findGoProblem(program.title);
  if (problem !== undefined) throw new SetupError(`Missing: ${problem.missing}`, problem.remedy);
  const buildOnce = async () => (isProgram(target) ? undefined : build(program, target));
  await withLock(program.name, buildOnce, () => reportWaiting(program.name, `build ${program.title}`));
  return target;
}

/**
 * @param {GoProgram} program
 * @param {string} target
 */
async function build({ name, title, packagePath, version, moduleSum, ldflags = "", runs = () => true }, target) {
  const parent = dirname(target);
  mkdirSync(parent, { recursive: true });
  // The caller holds the lock, so a build directory belongs to a set-up that was killed.
  for (const entry of readdirSync(parent)) {
    if (entry.startsWith(BUILD_PREFIX)) rmSync(join(parent, entry), { recursive: true, force: true });
  }
  const directory = mkdtempSync(join(parent, BUILD_PREFIX));
  try {
    let packages = 0;
    await runCommand({
      title: `Building ${title}`,
      argv: ["go", "install", "-v", "-trimpath", "-ldflags", `-s -w ${ldflags}`.trim(), `${packagePath}@${version}`],
      cwd: directory,
      env: {
        GOBIN: directory,
        // runsc starts itself again inside an empty root, where a dynamic binary finds no libraries.
        CGO_ENABLED: "0",
        GOTOOLCHAIN: process.env["GOTOOLCHAIN"] ?? "auto",
        // Settings meant for other projects: flags, another platform, a workspace.
        ...{ GOFLAGS: "", GOOS: "", GOARCH: "", GOWORK: "off" },
      },
      describe: (line) => (line.startsWith("go: ") ? line.slice(4) : `${++packages} packages compiled`),
      hint: "Check the network and `go env GOPROXY`, then run the same command again.",
    });
    const built = join(directory, name);
    if (!outputOf("go", ["version", "-m", built]).includes(`${version}\t${moduleSum}`)) {
      throw new SetupError(
        `The module of ${title} that Go downloaded does not match the pinned hash ${moduleSum}; set-up does not use it.`,
        "Check `go env GOPROXY GONOSUMDB`, run `go clean -modcache`, then run the same command again.",
      );
    }
    if (!runs(built)) {
      const what = `${title} was built and does not run on this machine.`;
      throw new SetupError(what, `Run \`go env\`, and report its output with this message.`);
    }
    renameSync(built, target);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
