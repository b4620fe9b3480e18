import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { SandboxError } from "@sandpiper/core";

/** Lies in the machine's directory. */
export const QEMU_LOG = "qemu.log";

/**
 * Reads its directory, the file for descriptor 3 and its arguments, one a line, and becomes the command. A detached
 * child enters the cgroups in the meantime, because the kernel takes milliseconds to move a process; it confirms on
 * descriptor 4. Being detached, it leaves QEMU no zombie.
 */
const BECOME = `
IFS= read -r directory && cd "$directory" || exit 1
exec >> ${QEMU_LOG} 2>&1
IFS= read -r state && exec 3< "$state" || exit 1
while IFS= read -r word || exit 1; [ -n "$word" ]; do set -- "$@" "$word"; done
exec < /dev/null
( ( while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; echo >&4 ) & )
while [ "$1" != -- ]; do shift; done; shift
exec "$@" 4>&-`;

export interface Becoming {
  readonly directory: string;
  /** The file that QEMU reads as `fd:3`. */
  readonly stateFile?: string | undefined;
  /** Files that move a process into a cgroup when its id is written to them. */
  readonly cgroupEntrances: readonly string[];
  readonly command: readonly string[];
}

/**
 * A shell that waits to become QEMU. Starting a process from a large program takes long, because the kernel copies its
 * page tables; this moves that time before the request.
 */
export class WaitingShell {
  readonly #env: Readonly<Record<string, string>>;
  #waiting: ChildProcess | undefined;
  #isClosed = false;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  /** Starts the next shell while this one becomes the command. */
  become({ directory, stateFile = "/dev/null", cgroupEntrances, command }: Becoming): ChildProcess {
    const words = [directory, stateFile, ...cgroupEntrances, "--", ...command];
    checkWords(words);
    const child = this.#waiting ?? start(this.#env);
    this.#waiting = undefined;
    child.stdin?.end(`${words.join("\n")}\n\n`);
    setImmediate(() => this.#wait());
    return child;
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting?.stdin?.end();
    this.#waiting = undefined;
  }

  #wait(): void {
    if (this.#isClosed || this.#waiting !== undefined) return;
    const child = start(this.#env);
    const forget = () => {
      if (this.#waiting === child) this.#waiting = undefined;
    };
    child.once("error", forget);
    child.once("exit", forget);
    this.#waiting = child;
  }
}

/**
 * A waiting shell ends with this program and does not keep it running; the command that it becomes outlives the
 * program.
 */
function start(env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn("/bin/sh", ["-c", BECOME, "sh"], {
    cwd: "/",
    env: { ...env },
    stdio: ["pipe", "ignore", "ignore", "ignore", "pipe"],
    // Ctrl-C in the terminal must not reach the machine.
    detached: true,
  });
  child.unref();
  for (const pipe of [child.stdin, child.stdio[4]] as (Socket | undefined)[]) pipe?.unref();
  // The exit of a dead shell is reported when it should become a command.
  child.stdin?.on("error", () => {});
  return child;
}

/** Resolves with whether the process has entered all its cgroups. */
export async function hasEntered(child: ChildProcess): Promise<boolean> {
  const said = child.stdio[4] as Socket | undefined;
  const pieces = await said
    ?.ref()
    .toArray()
    .catch(() => []);
  return pieces !== undefined && pieces.length > 0;
}

function checkWords(words: readonly string[]): void {
  const wrong = words.find((word) => word === "" || word.includes("\n"));
  if (wrong === undefined) return;
  throw new SandboxError("unusable_path", {
    message: `QEMU cannot be started with the argument ${JSON.stringify(wrong)}: it is empty or has line breaks`,
  });
}
