import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CommandError, runCommand } from "./command.mjs";
import { isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { outputOf } from "./output-of.mjs";
import { isRecentRunsc, runscRelease } from "./runsc-release.mjs";

const BUILD_PREFIX = ".build-";

/**
 * Builds the pinned release from the Go module proxy, once per user and version.
 * @param {string} cacheDirectory
 */
export async function buildRunsc(cacheDirectory) {
  const target = join(cacheDirectory, runscRelease.moduleVersion, "runsc");
  mkdirSync(cacheDirectory, { recursive: true });
  const onWait = () => console.error("  ▸ Waiting for another set-up to build gVisor");
  await withLock(
    "runsc",
    async () => {
      if (isProgram(target)) return;
      removeAbandonedBuilds(cacheDirectory);
      const buildDirectory = mkdtempSync(join(cacheDirectory, BUILD_PREFIX));
      try {
        await build(buildDirectory);
        checkBuild(join(buildDirectory, "runsc"));
        mkdirSync(join(cacheDirectory, runscRelease.moduleVersion), { recursive: true });
        // Whoever looks for the binary finds all of it or none.
        renameSync(join(buildDirectory, "runsc"), target);
      } finally {
        rmSync(buildDirectory, { recursive: true, force: true });
      }
    },
    onWait,
  );
}

/** @param {string} buildDirectory */
async function build(buildDirectory) {
  let packages = 0;
  const ldflags = `-s -w -X gvisor.dev/gvisor/runsc/version.version=${runscRelease.version}`;
  await runCommand({
    title: `Building gVisor ${runscRelease.version} (once, about a minute)`,
    argv: [
      "go",
      "install",
      "-v",
      "-trimpath",
      "-ldflags",
      ldflags,
      `gvisor.dev/gvisor/runsc@${runscRelease.moduleVersion}`,
    ],
    cwd: buildDirectory,
    env: {
      GOBIN: buildDirectory,
      // A dynamic binary cannot start again inside the empty root that runsc gives itself.
      CGO_ENABLED: "0",
      GOTOOLCHAIN: process.env["GOTOOLCHAIN"] ?? "auto",
      // Settings meant for other projects: flags, another platform, a workspace.
      GOFLAGS: "",
      GOOS: "",
      GOARCH: "",
      GOWORK: "off",
    },
    describe: (line) => (line.startsWith("go: ") ? line.slice(4) : `${++packages} packages compiled`),
    hint: "Check the network and `go env GOPROXY`, then run the same command again.",
  });
}

/** @param {string} binary */
function checkBuild(binary) {
  const expected = `${runscRelease.moduleVersion}\t${runscRelease.moduleSum}`;
  if (!outputOf("go", ["version", "-m", binary]).includes(expected)) {
    throw new CommandError(
      `The gVisor module that Go fetched is not the pinned one (${runscRelease.moduleSum}); it was not installed. ` +
        "Check `go env GOPROXY GONOSUMDB`, run `go clean -modcache`, and try again.",
    );
  }
  const version = outputOf(binary, ["--version"]);
  if (!isRecentRunsc(version)) {
    throw new CommandError(
      `The new runsc does not run on this machine (it said "${version.trim()}"); please report it.`,
    );
  }
}

/**
 * What a set-up that was killed left behind; the caller holds the lock, so nobody works in them.
 * @param {string} cacheDirectory
 */
function removeAbandonedBuilds(cacheDirectory) {
  for (const name of readdirSync(cacheDirectory)) {
    if (name.startsWith(BUILD_PREFIX)) rmSync(join(cacheDirectory, name), { recursive: true, force: true });
  }
}
