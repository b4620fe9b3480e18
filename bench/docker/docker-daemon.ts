import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { open, readFile, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Docker, provideDocker } from "../../scripts/setup/docker.mjs";
import { run } from "../run.ts";
import type { Workspace } from "../workspace.ts";

const START_ATTEMPTS = 300;
const START_INTERVAL_MS = 100;
/** From util-linux: runs a program with changed process settings. */
const SETPRIV = "setpriv";
const STOP_TIMEOUT_MS = 20_000;
/** Fixed directories that a daemon creates outside its own, innermost first. */
const RUN_DIRS = ["/run/containerd/s", "/run/containerd", "/run/docker/plugins", "/run/docker"];

export interface DockerDaemonOptions {
  /** Its directory in the run's directory. */
  readonly name?: string;
  /** The bridge that its containers join; without one they have no network. */
  readonly bridge?: string;
  /** The command line that runs a program in the daemon's network namespace. */
  readonly enter?: (argv: readonly string[]) => readonly string[];
}

/** A separate dockerd that changes nothing of the machine's network. */
export class DockerDaemon implements AsyncDisposable {
  readonly engine: Docker;
  readonly host: string;
  readonly #process: ChildProcess;
  readonly #newRunDirs = RUN_DIRS.filter((dir) => !existsSync(dir));

  private constructor(engine: Docker, host: string, process: ChildProcess) {
    this.engine = engine;
    this.host = host;
    this.#process = process;
  }

  static async start(workspace: Workspace, options: DockerDaemonOptions = {}): Promise<DockerDaemon> {
    const { name = "docker", bridge = "none", enter = (argv) => argv } = options;
    const engine = await provideDocker();
    const dir = await workspace.makeDir(name);
    const host = `unix://${join(dir, "docker.sock")}`;
    const logPath = join(dir, "dockerd.log");
    await using log = await open(logPath, "w");
    // A separate process group shields it from the terminal's Ctrl-C, and it ends with the benchmark even if that is killed.
    const args = [
      "--pdeathsig",
      "TERM",
      ...enter([engine.dockerd, ...daemonArgs(dir, host, workspace)]),
      "--bridge",
      bridge,
    ];
    // If containerd is killed, it leaves a report in the temporary directory.
    const env = { ...engine.env, TMPDIR: dir };
    const child = spawn(SETPRIV, args, { stdio: ["ignore", log.fd, log.fd], env, detached: true });
    const daemon = new DockerDaemon(engine, host, child);
    try {
      await daemon.#answers(workspace.signal);
    } catch (cause) {
      await daemon[Symbol.asyncDispose]();
      throw new Error(`dockerd did not start: ${(await readFile(logPath, "utf8")).slice(-1500)}`, { cause });
    }
    return daemon;
  }

  run(args: readonly string[]) {
    return run(this.engine.docker, this.clientArgs(args), { env: this.engine.env });
  }

  clientArgs(args: readonly string[]): string[] {
    return ["--host", this.host, ...args];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    // Fails if another program has put a file there meanwhile.
    for (const dir of this.#newRunDirs) await rmdir(dir).catch(() => undefined);
  }

  async #stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null || this.#process.pid === undefined) return;
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    await Promise.race([exited, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
    this.#process.kill("SIGKILL");
    await exited;
  }

  async #answers(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      const version = await this.run(["version", "--format", "{{.Server.Version}}"]).catch(() => undefined);
      if (version !== undefined) return;
      if (this.#process.exitCode !== null) throw new Error(`dockerd exited with code ${this.#process.exitCode}`);
      await sleep(START_INTERVAL_MS, undefined, { signal });
    }
    throw new Error(`dockerd does not answer on ${this.host}`);
  }
}

function daemonArgs(dir: string, host: string, workspace: Workspace): string[] {
  return [
    ...["--host", host, "--data-root", join(dir, "data"), "--exec-root", join(dir, "exec")],
    ...["--pidfile", join(dir, "dockerd.pid"), "--iptables=false"],
    // Named after the run, to tell leftovers from another Docker's.
    ...["--cgroup-parent", `/${basename(workspace.dir)}`],
  ];
}
