import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

export const USAGE = `usage: npm run verify-firecracker -- PATH [options]

Checks that Sandpiper works with the Firecracker at PATH: boots machines through a node of its own, runs commands, saves,
restores and forks them, kills the node and Firecracker, and looks for leftovers. Prints a report in Markdown.

  PATH                    the firecracker program, with its jailer next to it
  --kernel FILE           boot this kernel instead of the one that set-up downloads
  --boot-timeout SECONDS  how long a machine may take to boot (60)
  --help                  show this

As root, with KVM. Everything lies in one temporary directory and is removed at the end, also after Ctrl-C.
Exit code: 0 all steps passed, 1 a step failed, 2 wrong arguments.`;

export interface VerifyOptions {
  readonly firecracker: string;
  readonly kernel: string | undefined;
  readonly bootTimeoutMs: number;
}

/** Throws a TypeError for invalid arguments. */
export function parseArguments(args: readonly string[]): VerifyOptions | "help" {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      kernel: { type: "string" },
      "boot-timeout": { type: "string", default: "60" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  const [path, ...more] = positionals;
  if (path === undefined) throw new TypeError("PATH of the firecracker program is missing");
  if (more.length > 0) throw new TypeError(`unexpected argument ${more[0]}`);
  const seconds = Number(values["boot-timeout"]);
  if (!(seconds > 0))
    throw new TypeError(`--boot-timeout ${values["boot-timeout"]}: expected a number of seconds above 0`);
  return {
    firecracker: existing(path),
    kernel: values.kernel === undefined ? undefined : existing(values.kernel),
    bootTimeoutMs: Math.round(seconds * 1000),
  };
}

function existing(path: string): string {
  if (!existsSync(path)) throw new TypeError(`${path} does not exist`);
  return resolve(path);
}
