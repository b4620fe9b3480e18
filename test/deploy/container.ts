import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { run } from "../../bench/run.ts";
import { provideDocker } from "../../scripts/setup/docker.mjs";
import { type ContainerOptions, containerSpec } from "./container-spec.ts";

/** Of util-linux: runs a program in a mount namespace of its own. */
const UNSHARE = "unshare";

/** A container of runc, the runtime below Docker and Kubernetes, with the privileges of `docker run --privileged`. */
export class Container {
  readonly log: string[] = [];
  readonly #id: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #state: string;
  readonly #child: ChildProcess;

  private constructor(id: string, env: NodeJS.ProcessEnv, state: string, child: ChildProcess) {
    this.#id = id;
    this.#env = env;
    this.#state = state;
    this.#child = child;
    for (const input of [child.stdout, child.stderr]) {
      if (input !== null) createInterface({ input }).on("line", (line) => this.log.push(line));
    }
  }

  static async start(options: ContainerOptions): Promise<Container> {
    const { env } = await provideDocker();
    const { bed, name, directory, image } = options;
    const [bundle, rootfs, modules, state] = ["", "rootfs", "modules", "state"].map((part) => join(directory, part));
    for (const path of [bundle, rootfs, modules, state] as string[]) mkdirSync(path, { recursive: true });
    const hosts = Object.entries({ localhost: "127.0.0.1", ...options.hosts }).map(([host, ip]) => `${ip} ${host}\n`);
    writeFileSync(join(directory, "hosts"), hosts.join(""));
    writeFileSync(join(directory, "config.json"), JSON.stringify(containerSpec(options)));
    const id = `${bed}-${name}`;
    // Its mounts are in its own namespace and disappear with it.
    const script = [
      mountOverlay(image.layers, directory, "rootfs"),
      ...(image.nodeModules === undefined ? [] : [mountOverlay(image.nodeModules, directory, "modules")]),
      `exec runc --root ${state} run --bundle ${bundle} ${id}`,
    ];
    const argv = ["--mount", "--propagation", "private", "sh", "-c", script.join(" && ")];
    const child = spawn(UNSHARE, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
    return new Container(id, env, state as string, child);
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Runs a program in it, as `docker exec` and Kubernetes' hooks do. */
  async exec(argv: readonly string[]): Promise<string> {
    return (await run("runc", ["--root", this.#state, "exec", this.#id, ...argv], { env: this.#env })).stdout;
  }

  /** Sends SIGTERM to its first process, and returns that process's exit code. */
  async stop(): Promise<number | null> {
    const ended = once(this.#child, "close");
    await run("runc", ["--root", this.#state, "kill", this.#id, "TERM"], { env: this.#env });
    await ended;
    return this.#child.exitCode;
  }
}

function mountOverlay(layers: readonly string[], directory: string, name: string): string {
  const [upper, work] = ["upper", "work"].map((part) => join(directory, `${name}-${part}`));
  const options = `lowerdir=${layers.join(":")},upperdir=${upper},workdir=${work}`;
  return `mkdir -p ${upper} ${work} && mount -t overlay overlay -o ${options} ${join(directory, name)}`;
}
