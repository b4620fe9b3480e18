import { existsSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../guest/cache-directory.ts";
import { findProgram, isProgram } from "../host/find-program.ts";
import { remembered } from "../host/remembered.ts";
import { runProgram } from "../host/run-program.ts";

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
export async function findQemu(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Qemu | { readonly reason: string; readonly hint: string }> {
  const name = NAMES[process.arch];
  if (name === undefined)
    return { reason: `QEMU machines do not support ${process.arch}`, hint: "use an x86-64 machine" };
  const chosen = environment["SANDPIPER_QEMU"] || undefined;
  const cache = cacheDirectory(environment);
  const installed = chosen ?? findProgram(name, environment["PATH"]);
  const found =
    installed === undefined
      ? unpacked(join(cache, "qemu-system-x86"), name)
      : { program: installed, args: [], env: {} };
  const version = isProgram(found.program) ? await versionOf(found, join(cache, "known")) : undefined;
  if (version !== undefined) return { ...found, version };
  return {
    reason: chosen === undefined ? `${name} not found` : `${chosen} is not a working ${name}`,
    hint: "install it, unpack Debian's with `npm run setup qemu` in Sandpiper's directory, or set SANDPIPER_QEMU to its path",
  };
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
  const version = await remembered({ directory, fact: "QEMU's version", files: [program] }, async () => {
    const { stdout } = await runProgram([program, "--version"], { env, timeoutMs: 10_000 });
    return /version (\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? "";
  });
  return version === "" ? undefined : version;
}
