import { existsSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../host/cache-directory.ts";
import { findProgram } from "../host/find-program.ts";
import { missing } from "../host/host-requirements.ts";
import { programVersion } from "../host/program-version.ts";
import { remembered } from "../host/remembered.ts";

/** QEMU's program, with the arguments and environment that it needs. */
export interface Qemu {
  readonly program: string;
  /** Come before all other arguments. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly version: string;
}

const NAMES: Readonly<Record<string, string>> = { x64: "qemu-system-x86_64", arm64: "qemu-system-aarch64" };
const LIBRARIES: Readonly<Record<string, string>> = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };

/** In order of preference: SANDPIPER_QEMU, one on the PATH, the one that set-up unpacked into the cache. */
export async function findQemu(environment: NodeJS.ProcessEnv = process.env): Promise<Qemu> {
  const name = NAMES[process.arch];
  if (name === undefined)
    throw missing("qemu_missing", `QEMU machines do not support ${process.arch}`, "use an x86-64 machine");
  const chosen = environment["SANDPIPER_QEMU"] || undefined;
  const cache = cacheDirectory(environment);
  const installed = chosen ?? findProgram(name, environment["PATH"]);
  const found =
    installed === undefined
      ? unpacked(join(cache, "qemu-system-x86"), name)
      : { program: installed, args: [], env: {} };
  const version = await versionOf(found, join(cache, "known"));
  if (version !== undefined) return { ...found, version };
  throw missing(
    "qemu_missing",
    chosen === undefined ? `${name} not found` : `${chosen} is not a working ${name}`,
    "install it, unpack Debian's with `npm run setup qemu` in Sandpiper's directory, or set SANDPIPER_QEMU to its path",
  );
}

type Program = Pick<Qemu, "program" | "args" | "env">;

function unpacked(root: string, name: string): Program {
  const libraries = ["usr/lib", "lib"].map((path) => join(root, path, LIBRARIES[process.arch] ?? ""));
  const firmware = ["usr/share/qemu", "usr/share/seabios"].map((path) => join(root, path)).filter(existsSync);
  return {
    program: join(root, "usr/bin", name),
    args: firmware.flatMap((directory) => ["-L", directory]),
    env: { LD_LIBRARY_PATH: libraries.join(":") },
  };
}

/** Asked once for each program, because it takes a tenth of the time of a machine's start. */
async function versionOf({ program, env }: Program, directory: string): Promise<string | undefined> {
  const compute = async () => (await programVersion(program, /version (\d+\.\d+\.\d+)/, env)) ?? "";
  return (await remembered({ directory, fact: "QEMU's version", files: [program] }, compute)) || undefined;
}
