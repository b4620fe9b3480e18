import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

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

  /** Waits until the screen shows something after what it showed at `from`. */
  async shows(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.screen.slice(from));
      if (found !== null) return found;
      const shown = new Promise<void>((resolve) => {
        this.#onOutput = resolve;
      });
      const end = await Promise.race([shown, this.#ended]);
      if (end !== undefined)
        throw new Error(`the terminal closed before it showed ${pattern}: ${this.screen.slice(from)}`);
    }
  }

  /** Changes the window's size, as a window manager does. */
  async resize(rows: number, cols: number): Promise<void> {
    await run("stty", ["-F", `/proc/${this.programId()}/fd/0`, "rows", String(rows), "cols", String(cols)]);
  }

  /** The settings of the terminal, for example "-icanon". */
  async settings(): Promise<string> {
    return (await run("stty", ["-F", `/proc/${this.programId()}/fd/0`, "--all"])).stdout;
  }

  /** The exit code of the command. */
  async exitCode(): Promise<number | null> {
    return (await this.#ended)[0];
  }

  /** The process that `script` runs on the terminal. */
  programId(): number {
    const pid = this.#script.pid as number;
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const [child] = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" ");
      if (child) return Number(child);
    }
    throw new Error("the command has ended");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#script.kill("SIGKILL");
    await this.#ended;
  }
}
