import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";

/** The S3 server that tests of the store run against; nothing else needs it. */
const release = Object.freeze({
  version: "v1.8.0",
  /** The module's content hash, as `go version -m` shows it. */
  moduleSum: "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
});

const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/versitygw");

/**
 * Where the server's program is; the first time it is built, once per user and version.
 * @returns {Promise<string>}
 */
export async function provideS3Server() {
  const target = join(cacheDirectory, release.version, "versitygw");
  if (isProgram(target)) return target;
  if (findProgram("go") === undefined) {
    throw new CommandError(
      "Tests of the S3 store need Go, to build versitygw with; see the README for how to install it.",
    );
  }
  mkdirSync(dirname(target), { recursive: true });
  const onWait = () => console.error("  ▸ Waiting for somebody else to build versitygw");
  await withLock(
    "versitygw",
    async () => {
      if (!isProgram(target)) await build(target);
    },
    onWait,
  );
  return target;
}

/** @param {string} target */
async function build(target) {
  const directory = mkdtempSync(join(dirname(target), ".build-"));
  try {
    let packages = 0;
    await runCommand({
      title: `Building versitygw ${release.version} (once, about two minutes)`,
      argv: [
        "go",
        "install",
        "-v",
        "-trimpath",
        "-ldflags",
        "-s -w",
        `github.com/versity/versitygw/cmd/versitygw@${release.version}`,
      ],
      cwd: directory,
      env: { GOBIN: directory, CGO_ENABLED: "0", GOFLAGS: "", GOOS: "", GOARCH: "", GOWORK: "off" },
      describe: (line) => (line.startsWith("go: ") ? line.slice(4) : `${++packages} packages compiled`),
      hint: "Check the network and `go env GOPROXY`, then run the same command again.",
    });
    const built = join(directory, "versitygw");
    if (!outputOf("go", ["version", "-m", built]).includes(`${release.version}\t${release.moduleSum}`)) {
      throw new CommandError(
        `The versitygw that Go fetched is not the pinned one (${release.moduleSum}); it is not used.`,
      );
    }
    renameSync(built, target);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
