import { join } from "node:path";
import { cacheDirectory } from "./cache-directory.ts";
import { findProgram, isProgram } from "./find-program.ts";
import { isAtLeast, programVersion } from "./program-version.ts";
import { runscRelease } from "./runsc-release.ts";

const VERSION = /^runsc version (\S+)/;
const PREFIX = /^release-/;
/** Builds from source may print any other version. */
const RELEASE = /^\d{8}(\.\d+)?$/;

export interface FoundRunsc {
  readonly path: string;
  /** The release, without the prefix that official builds have. */
  readonly version: string;
  /** All that the build prints as its version. Two builds of one release may differ in it, and gVisor then treats them as different. */
  readonly build: string;
}

export interface MissingRunsc {
  readonly reason: string;
  readonly hint: string;
}

/** In order of preference: the configured path, SANDPIPER_RUNSC, a recent one on the PATH, the build that set-up cached. */
export async function findRunsc(
  configured: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<FoundRunsc | MissingRunsc> {
  const chosen = configured ?? (environment["SANDPIPER_RUNSC"] || undefined);
  if (chosen !== undefined) return await checkChosen(chosen);
  const installed = findProgram("runsc", environment["PATH"]);
  const build = installed === undefined ? undefined : await runscBuild(installed);
  const version = build?.replace(PREFIX, "");
  if (installed !== undefined && build !== undefined && version !== undefined && isRecent(version)) {
    return { path: installed, version, build };
  }
  const cached = join(cacheDirectory(environment), "runsc", runscRelease.moduleVersion, "runsc");
  if (isProgram(cached)) return { path: cached, version: runscRelease.version, build: runscRelease.version };
  const old = version === undefined ? "" : ` (${installed} is ${version}, which is too old)`;
  return {
    reason: `runsc release ${runscRelease.version} or newer not found${old}`,
    hint: "run `npm run setup` in Sandpiper's directory, which builds it, or set SANDPIPER_RUNSC to its path",
  };
}

async function checkChosen(path: string): Promise<FoundRunsc | MissingRunsc> {
  const build = await runscBuild(path);
  if (build === undefined) {
    return {
      reason: `${path} is configured as runsc, but it is not a runsc that works here`,
      hint: `run \`${path} --version\` to see why, or unset SANDPIPER_RUNSC to use set-up's build`,
    };
  }
  const version = build.replace(PREFIX, "");
  // A configured build without a release number is the user's decision.
  if (isRecent(version) || !RELEASE.test(version)) return { path, version, build };
  return {
    reason: `${path} is configured as runsc, but its release ${version} is older than ${runscRelease.version}`,
    hint: "configure a newer one, or unset SANDPIPER_RUNSC to use set-up's build",
  };
}

/** What the program prints as its version; undefined if it is not a runsc that works here. */
export function runscBuild(path: string): Promise<string | undefined> {
  return programVersion(path, VERSION);
}

function isRecent(version: string): boolean {
  return RELEASE.test(version) && isAtLeast(version, runscRelease.version);
}
