import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect } from "vitest";

const run = promisify(execFile);

/** A program on a real terminal. */
export class PseudoTerminal implements AsyncDisposable {
  /** Everything shown so far. */
  screen = "";
  readonly #script: ChildProcess;
  readonly #ended: Promise<[number | null]>;

  /** Runs a shell command on a new terminal, which `script` creates. */
  constructor(command: string, env: NodeJS.ProcessEnv) {
    this.#script = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
      cwd: "/",
      env: { ...process.env, ...env },
      stdio: "pipe",
    });
    this.#ended = once(this.#script, "close") as Promise<[number | null]>;
    this.#script.stdout?.on("data", (chunk: Buffer) => {
      this.screen += chunk.toString("latin1");
    });
  }

  type(keys: string): void {
    this.#script.stdin?.write(keys);
  }

  /** Waits until the screen has shown a text. */
  async shows(pattern: RegExp | string): Promise<void> {
    await expect.poll(() => this.screen, { interval: 20 }).toMatch(pattern);
  }

  /** Sets the prompt of a shell and waits for it; the quotes keep the echo of the line from matching it. */
  async prompt(): Promise<void> {
    this.type("PS1='ready''> '\n");
    await this.shows(/ready> /);
  }

  /** Changes the window's size, as a window manager does. */
  async resize(rows: number, cols: number): Promise<void> {
    await run("stty", ["-F", `/proc/${this.shellId()}/fd/0`, "rows", String(rows), "cols", String(cols)]);
  }

  /** The exit code of the command. */
  async exitCode(): Promise<number | null> {
    return (await this.#ended)[0];
  }

  /** The shell that runs the command. */
  shellId(): number {
    return childOf(this.#script.pid as number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#script.kill("SIGKILL");
    await this.#ended;
  }
}

/** The first child process of a process. */
export function childOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  if (!child) throw new Error(`process ${pid} has no child`);
  return Number(child);
}
