import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { run } from "../run.ts";
import type { Replacement, RunscTemplate } from "./runsc-template.ts";

const START_TIMEOUT_MS = 30_000;
/** A line that the agent answers. */
export const PING = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\n';

/** One sandbox started with runsc itself, on a FIFO pair, from the bundle that Sandpiper's provider uses. */
export class RunscInstance implements AsyncDisposable {
  readonly id = crypto.randomUUID();
  readonly dir: string;
  readonly inPath: string;
  readonly outPath: string;
  readonly #template: RunscTemplate;

  private constructor(template: RunscTemplate) {
    this.#template = template;
    this.dir = join(template.instancesDir, this.id);
    this.inPath = join(this.dir, "in");
    this.outPath = join(this.dir, "out");
  }

  /** Does all work that does not count. */
  static async prepare(template: RunscTemplate, replacement: Replacement = {}): Promise<RunscInstance> {
    const instance = new RunscInstance(template);
    await mkdir(instance.dir, { mode: 0o700 });
    await writeFile(join(instance.dir, "config.json"), JSON.stringify(template.configFor(instance.id, replacement)));
    await run("mkfifo", [instance.inPath, instance.outPath]);
    return instance;
  }

  /** Starts it detached, sends the line to the program inside, and resolves when the first bytes return. */
  async start(line: string): Promise<void> {
    await this.#launch(["run", "--detach"], line);
  }

  /** Like `start`, from the files of a checkpoint. */
  async restore(image: string, line: string): Promise<void> {
    await this.#launch(["restore", "--detach", "--image-path", image], line);
  }

  /** Saves it as files in an existing empty directory; unless left running, it has then ended. */
  async checkpoint(image: string, { keepsRunning }: { readonly keepsRunning: boolean }): Promise<void> {
    const leave = keepsRunning ? ["--leave-running"] : [];
    await run(this.runscPath, this.args("checkpoint", "--image-path", image, ...leave, this.id));
  }

  /** Sends a line to the program inside, which answers with one; `count` times sequentially. */
  async ask(line: string, count: number): Promise<void> {
    const input = openSync(this.inPath, constants.O_WRONLY);
    const answers = new Socket({ fd: openSync(this.outPath, constants.O_RDONLY | constants.O_NONBLOCK) });
    try {
      for (let k = 0; k < count; k++) {
        const signal = AbortSignal.timeout(START_TIMEOUT_MS);
        writeSync(input, line);
        for (let answer = ""; !answer.endsWith("\n"); ) answer += String((await once(answers, "data", { signal }))[0]);
      }
    } finally {
      closeSync(input);
      answers.destroy();
    }
  }

  get runscPath(): string {
    return this.#template.runscPath;
  }

  /** The arguments of a runsc verb for this instance. */
  args(...verb: readonly string[]): string[] {
    return [...this.#template.flagsFor(this.dir), ...verb];
  }

  /** Copies a host file into it. */
  async upload(hostPath: string, path: string): Promise<void> {
    const fd = openSync(hostPath, "r");
    const script = 'cat > "$1" && chmod 755 "$1"';
    const child = spawn(this.runscPath, this.args("exec", this.id, "/bin/sh", "-c", script, "sh", path), {
      stdio: [fd, "ignore", "inherit"],
    });
    closeSync(fd);
    const [exitCode] = await once(child, "exit");
    if (exitCode !== 0) throw new Error(`could not put ${hostPath} into ${this.id}: exit code ${exitCode}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run(this.#template.runscPath, this.args("delete", "--force", this.id));
    await rm(this.dir, { recursive: true, force: true });
  }

  async #launch(verb: readonly string[], line: string): Promise<void> {
    // Read-write, as in the provider, so that the sandbox never reads end of file.
    const spawnFds = [this.inPath, this.outPath].map((path) => openSync(path, constants.O_RDWR));
    const logFd = openSync(this.#logPath, "w");
    const child = spawn(this.#template.runscPath, this.args(...verb, "--bundle", this.dir, this.id), {
      stdio: [...spawnFds, logFd],
    });
    const answers = new Socket({ fd: openSync(this.outPath, constants.O_RDONLY | constants.O_NONBLOCK) });
    try {
      writeSync(spawnFds[0] as number, line);
      for (const fd of [...spawnFds, logFd]) closeSync(fd);
      const signal = AbortSignal.timeout(START_TIMEOUT_MS);
      // Without a sandbox no process holds the other end, which ends the stream.
      await Promise.race([
        once(answers, "data", { signal }),
        once(answers, "end", { signal }).then(() => this.#explain(verb)),
      ]);
    } finally {
      answers.destroy();
      if (child.exitCode === null) await once(child, "exit");
    }
  }

  get #logPath(): string {
    return join(this.dir, "runsc.log");
  }

  async #explain([name]: readonly string[]): Promise<never> {
    throw new Error(`runsc ${name} of ${this.id} failed: ${(await readFile(this.#logPath, "utf8")).slice(-1500)}`);
  }
}
