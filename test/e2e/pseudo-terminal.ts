import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Without anything new on the screen for so long, what is waited for does not come. */
const PATIENCE_MS = 10_000;

/** A program on a real terminal, with somebody who types and reads. */
export class PseudoTerminal implements AsyncDisposable {
  /** Everything shown so far. */
  screen = "";
  readonly #script: ChildProcess;
  readonly #ended: Promise<[number | null]>;
  #onOutput: () => void = () => {};

  /** The command is a shell's; `script` gives it a terminal of its own. */
  constructor(command: string, env: NodeJS.ProcessEnv) {
    this.#script = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
      cwd: "/",
      env: { ...process.env, ...env },
      stdio: "pipe",
    });
    this.#ended = once(this.#script, "close") as Promise<[number | null]>;
    this.#script.stdout?.on("data", (chunk: Buffer) => {
      this.screen += chunk.toString("latin1");
      this.#onOutput();
    });
  }

  type(keys: string): void {
    this.#script.stdin?.write(keys);
  }

  /** Waits until the screen has shown something. */
  async shows(pattern: RegExp | string): Promise<void> {
    while (!this.#hasShown(pattern)) {
      const shown = new Promise<void>((resolve) => {
        this.#onOutput = resolve;
      });
      const patience = Promise.withResolvers<string>();
      const timer = setTimeout(() => patience.resolve("did not show"), PATIENCE_MS);
      const end = await Promise.race([shown, patience.promise, this.#ended.then(() => "closed before it showed")]);
      clearTimeout(timer);
      if (end !== undefined) throw new Error(`the terminal ${end} ${pattern}: ${JSON.stringify(this.screen)}`);
    }
  }

  #hasShown(pattern: RegExp | string): boolean {
    return typeof pattern === "string" ? this.screen.includes(pattern) : pattern.test(this.screen);
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
