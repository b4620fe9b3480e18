import { homedir } from "node:os";
import { join } from "node:path";
import { findProgram, isProgram } from "./find-program.mjs";
import { outputOf } from "./output-of.mjs";
import { buildRunsc } from "./runsc-build.mjs";
import { isRecentRunsc, runscRelease } from "./runsc-release.mjs";

/** The oldest Go that fetches a newer toolchain by itself when a module asks for one. */
const OLDEST_GO = 21;

const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/runsc");
const cachedRunsc = join(cacheDirectory, runscRelease.moduleVersion, "runsc");

/**
 * In order of preference: the configured binary, a recent one on the PATH, the cached build, a build now.
 * @returns {import("./plan.d.ts").Plan}
 */
export function planRunsc() {
  const configured = process.env["SANDPIPER_RUNSC"];
  if (configured !== undefined && configured !== "") {
    if (isProgram(configured)) return { detail: configured, problems: [] };
    const remedy = "Run: unset SANDPIPER_RUNSC\nor set it to the absolute path of a runsc binary.";
    return { detail: configured, problems: [{ missing: `A program at SANDPIPER_RUNSC=${configured}.`, remedy }] };
  }
  const installed = findProgram("runsc");
  if (installed !== undefined && isRecentRunsc(outputOf(installed, ["--version"]))) {
    return { detail: installed, problems: [] };
  }
  if (isProgram(cachedRunsc)) return { detail: cachedRunsc, problems: [] };
  return { detail: cachedRunsc, problems: findGoProblem(), work: () => buildRunsc(cacheDirectory) };
}

function findGoProblem() {
  const go = findProgram("go");
  const found = go === undefined ? undefined : /go1\.(\d+)/.exec(outputOf(go, ["version"]))?.[1];
  if (Number(found ?? 0) >= OLDEST_GO) return [];
  const what = found === undefined ? "Go" : `Go 1.${OLDEST_GO} or newer (${go} is 1.${found})`;
  const arch = process.arch === "arm64" ? "arm64" : "amd64";
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  const remedy = [
    `Run: curl -fsSL https://go.dev/dl/go1.26.8.linux-${arch}.tar.gz | ${sudo}tar -C /usr/local -xz`,
    "     export PATH=/usr/local/go/bin:$PATH",
    `or, with an official runsc of release ${runscRelease.version} or newer (https://gvisor.dev/docs/user_guide/install/):`,
    "     export SANDPIPER_RUNSC=/path/to/runsc",
  ].join("\n");
  return [{ missing: `${what}, to build gVisor ${runscRelease.version} with.`, remedy }];
}
