import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { findProgram, isProgram } from "../host/find-program.ts";
import { runProgram } from "../host/run-program.ts";

/** The first version that describes its devices through ACPI, which Debian's kernel needs. */
const OLDEST: readonly [number, number] = [1, 8];

export interface Firecracker {
  readonly program: string;
  readonly jailer: string;
  readonly version: string;
}

export interface MissingFirecracker {
  readonly code: "firecracker_missing" | "firecracker_too_old" | "jailer_missing";
  readonly reason: string;
  readonly hint: string;
}

const WHERE_FROM =
  "download both programs of a release from https://github.com/firecracker-microvm/firecracker/releases, and put them on the PATH";

/** In order of preference: SANDPIPER_FIRECRACKER, one on the PATH, one in the cache; with the jailer beside it. */
export async function findFirecracker(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Firecracker | MissingFirecracker> {
  const chosen = environment["SANDPIPER_FIRECRACKER"] || undefined;
  const cache = join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/firecracker/firecracker");
  const path = chosen ?? findProgram("firecracker", environment["PATH"]) ?? cache;
  const version = isProgram(path) ? await versionOf(path) : undefined;
  if (version === undefined) {
    const reason =
      chosen === undefined
        ? "Firecracker not found on the PATH or in the cache"
        : `${chosen} is not a working Firecracker`;
    const hint = `${WHERE_FROM}, or set SANDPIPER_FIRECRACKER to its path`;
    return { code: "firecracker_missing", reason, hint };
  }
  if (isOlder(version)) {
    const reason = `the Firecracker at ${path} has version ${version}; Sandpiper needs ${OLDEST.join(".")} or newer`;
    return { code: "firecracker_too_old", reason, hint: WHERE_FROM };
  }
  // The jailer names a jail's directory after the program's real name.
  const program = realpathSync(path);
  const jailer = environment["SANDPIPER_JAILER"] || jailerBeside(program);
  if (jailer !== undefined && isProgram(jailer)) return { program, jailer, version };
  const hint = `${WHERE_FROM}, or set SANDPIPER_JAILER to its path`;
  return { code: "jailer_missing", reason: `jailer not found beside ${program}`, hint };
}

/** The programs of a release have its version in their names. */
function jailerBeside(program: string): string | undefined {
  const names = [basename(program).replace("firecracker", "jailer"), "jailer"];
  return names.map((name) => join(dirname(program), name)).find((path) => existsSync(path) && path !== program);
}

async function versionOf(path: string): Promise<string | undefined> {
  const { stdout } = await runProgram([path, "--version"], { timeoutMs: 10_000 });
  return /^Firecracker v(\d+\.\d+\.\d+)/m.exec(stdout)?.[1];
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}
