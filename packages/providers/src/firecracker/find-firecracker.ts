import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheDirectory } from "../host/cache-directory.ts";
import { findProgram, isProgram } from "../host/find-program.ts";
import { missing } from "../host/host-requirements.ts";
import { isAtLeast, programVersion } from "../host/program-version.ts";

/** The first version that describes its devices through ACPI, which Debian's kernel needs. */
const OLDEST = "1.8";

export interface Firecracker {
  readonly program: string;
  readonly jailer: string;
  readonly version: string;
}

const WHERE_FROM =
  "download both programs of a release from https://github.com/firecracker-microvm/firecracker/releases, and put them on the PATH";

/** In order of preference: the given path, SANDPIPER_FIRECRACKER, one on the PATH, one in the cache; with the jailer beside it. */
export async function findFirecracker(
  environment: NodeJS.ProcessEnv = process.env,
  given?: string | undefined,
): Promise<Firecracker> {
  const chosen = given ?? (environment["SANDPIPER_FIRECRACKER"] || undefined);
  const cache = join(cacheDirectory(environment), "firecracker/firecracker");
  const path = chosen ?? findProgram("firecracker", environment["PATH"]) ?? cache;
  const version = await programVersion(path, /^Firecracker v(\d+\.\d+\.\d+)/m);
  if (version === undefined) {
    const reason =
      chosen === undefined
        ? "Firecracker not found on the PATH or in the cache"
        : `${chosen} is not a working Firecracker`;
    throw missing("firecracker_missing", reason, `${WHERE_FROM}, or set SANDPIPER_FIRECRACKER to its path`);
  }
  if (!isAtLeast(version, OLDEST)) {
    const reason = `the Firecracker at ${path} has version ${version}; Sandpiper needs ${OLDEST} or newer`;
    throw missing("firecracker_too_old", reason, WHERE_FROM);
  }
  // The jailer names a jail's directory after the program's real name.
  const program = realpathSync(path);
  const jailer = environment["SANDPIPER_JAILER"] || jailerBeside(program);
  if (jailer !== undefined && isProgram(jailer)) return { program, jailer, version };
  const hint = `${WHERE_FROM}, or set SANDPIPER_JAILER to its path`;
  throw missing("jailer_missing", `jailer not found beside ${program}`, hint);
}

/** The programs of a release have its version in their names. */
function jailerBeside(program: string): string | undefined {
  const names = [basename(program).replace("firecracker", "jailer"), "jailer"];
  return names.map((name) => join(dirname(program), name)).find((path) => existsSync(path) && path !== program);
}
