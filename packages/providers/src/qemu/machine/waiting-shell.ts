import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { SandboxError } from "@sandpiper/core";

/** In the machine's directory. */
export const QEMU_LOG = "qemu.log";

/**
 * Reads where it is to be, what it is to have as descriptor 3, and its words, one a line, and becomes them. It is taken into each cgroup
 * meanwhile: the kernel lets whoever moves a process wait for milliseconds, in which QEMU starts. Says so on descriptor 4 once it is there.
 * The one that does it is nobody's child, so that QEMU has no dead one.
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
  /** Where it starts. */
  readonly directory: string;
  /** What it reads as `fd:3`. */
  readonly stateFile?: string | undefined;
  /** Files that take a process into a cgroup. */
  readonly cgroupEntrances: readonly string[];
  readonly command: readonly string[];
}

/**
 * A process that waits to become QEMU. Most of the time in which a program as big as this one starts another it copies the tables of its own
 * memory: that is done before somebody waits for it.
 */
export class WaitingShell {
  readonly #env: Readonly<Record<string, string>>;
  #waiting: ChildProcess | undefined;
  #isClosed = false;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  /** The next one is started while this one becomes what it was told. */
  become({ directory, stateFile = "/dev/null", cgroupEntrances, command }: Becoming): ChildProcess {
    const words = [directory, stateFile, ...cgroupEntrances, "--", ...command];
    checkWords(words);
    const child = this.#waiting ?? start(this.#env);
    this.#waiting = undefined;
    child.stdin?.end(`${words.join("\n")}\n\n`);
    setImmediate(() => this.#wait());
    return child;
  }

  /** The one that waits ends. */
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

/** It ends with this program, which it does not keep from ending; what it becomes does not. */
function start(env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn("/bin/sh", ["-c", BECOME, "sh"], {
    cwd: "/",
    env: { ...env },
    stdio: ["pipe", "ignore", "ignore", "ignore", "pipe"],
    // A Ctrl-C in the terminal is not for the machine.
    detached: true,
  });
  child.unref();
  for (const pipe of [child.stdin, child.stdio[4]] as (Socket | undefined)[]) pipe?.unref();
  // What has ended by itself says so to whoever has it become something.
  child.stdin?.on("error", () => {});
  return child;
}

/** Whether it has been taken into all its cgroups, once that has been tried. */
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
  throw new SandboxError("failed_precondition", {
    reason: "unusable_path",
    message: `QEMU cannot be started with ${JSON.stringify(wrong)}: it is empty or has more than one line`,
    hint: "use paths without line breaks",
  });
}
