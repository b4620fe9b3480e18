import { homedir } from "node:os";
import { join } from "node:path";
import { findProgram, isProgram } from "./find-program.ts";
import { runProgram } from "./run-program.ts";
import { isRecentRunsc, isRelease, parseRunscVersion, runscRelease } from "./runsc-release.ts";

export interface FoundRunsc {
  readonly path: string;
  readonly version: string;
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
  const version = installed === undefined ? undefined : await versionOf(installed);
  if (installed !== undefined && version !== undefined && isRecentRunsc(version)) return { path: installed, version };
  const cached = join(
    environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"),
    `sandpiper/runsc/${runscRelease.moduleVersion}/runsc`,
  );
  if (isProgram(cached)) return { path: cached, version: runscRelease.version };
  const old = version === undefined ? "" : ` (${installed} is ${version}, which is too old)`;
  return {
    reason: `runsc release ${runscRelease.version} or newer not found${old}`,
    hint: "run `npm run setup` in Sandpiper's directory, which builds it, or set SANDPIPER_RUNSC to its path",
  };
}

async function checkChosen(path: string): Promise<FoundRunsc | MissingRunsc> {
  const version = isProgram(path) ? await versionOf(path) : undefined;
  if (version === undefined) {
    return {
      reason: `${path} is configured as runsc, but it is not a runsc that works here`,
      hint: `run \`${path} --version\` to see why, or unset SANDPIPER_RUNSC to use set-up's build`,
    };
  }
  // A configured build without a release number is the user's decision.
  if (isRecentRunsc(version) || !isRelease(version)) return { path, version };
  return {
    reason: `${path} is configured as runsc, but its release ${version} is older than ${runscRelease.version}`,
    hint: "configure a newer one, or unset SANDPIPER_RUNSC to use set-up's build",
  };
}

async function versionOf(path: string): Promise<string | undefined> {
  const { exitCode, stdout } = await runProgram([path, "--version"], { timeoutMs: 10_000 });
  return exitCode === 0 ? parseRunscVersion(stdout) : undefined;
}
