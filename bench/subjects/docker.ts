import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DockerDaemon } from "../docker/docker-daemon.ts";
import { guestPrograms } from "../guest-programs.ts";
import { listProcesses, processesNaming, proportionalMemory } from "../processes.ts";
import { run } from "../run.ts";
import { SETTLE_MS, type Subject, type SubjectDefinition } from "../subject.ts";
import { timeToExit, timeToFirstByte } from "../timed-run.ts";
import type { Workspace } from "../workspace.ts";

const IMAGE = "spbench:latest";
/** What a container that stays is doing: waiting for input that never comes. */
const WAIT = ["/bin/floor", "/bin/true"];

export const subject: SubjectDefinition = {
  name: "docker",
  title: "docker run / exec / cp, Debian's Docker Engine with runc, an image of static programs",
  async open(workspace) {
    const daemon = workspace.own(await DockerDaemon.start(workspace));
    await importImage(daemon, workspace);
    const version = await daemon.run(["version", "--format", "{{.Server.Version}}"]);
    workspace.versions["docker"] = version.stdout.trim();
    return new DockerSubject(daemon, await startContainer(daemon));
  },
};

class DockerSubject implements Subject {
  readonly #daemon: DockerDaemon;
  readonly #container: string;

  constructor(daemon: DockerDaemon, container: string) {
    this.#daemon = daemon;
    this.#container = container;
  }

  async createToReady(): Promise<number> {
    const startedAt = performance.now();
    const container = await startContainer(this.#daemon);
    const tookMs = performance.now() - startedAt;
    await this.#remove([container]);
    return tookMs;
  }

  createToFirstOutput(): Promise<number> {
    const args = this.#daemon.clientArgs(["run", "--rm", "--network", "none", IMAGE, "/bin/say"]);
    return timeToFirstByte(this.#daemon.engine.docker, args);
  }

  async execTrue(count: number): Promise<number[]> {
    const samples: number[] = [];
    for (let k = 0; k < count; k++) samples.push(await this.#time(["exec", this.#container, "/bin/true"]));
    return samples;
  }

  writeFile(hostPath: string): Promise<number> {
    return this.#time(["cp", hostPath, `${this.#container}:/tmp/file`]);
  }

  readFile(hostPath: string): Promise<number> {
    return this.#time(["cp", `${this.#container}:/tmp/file`, hostPath]);
  }

  async idleMemory(count: number, signal: AbortSignal): Promise<number[]> {
    const containers: string[] = [];
    try {
      for (let k = 0; k < count; k++) {
        signal.throwIfAborted();
        containers.push(await startContainer(this.#daemon));
      }
      await sleep(SETTLE_MS);
      const all = await listProcesses();
      const sizes: number[] = [];
      for (const container of containers) sizes.push(await proportionalMemory(processesNaming(container, all)));
      return sizes;
    } finally {
      await this.#remove(containers);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#remove([this.#container]);
  }

  #time(args: readonly string[]): Promise<number> {
    return timeToExit(this.#daemon.engine.docker, this.#daemon.clientArgs(args));
  }

  async #remove(containers: readonly string[]): Promise<void> {
    if (containers.length > 0) await this.#daemon.run(["rm", "--force", ...containers]);
  }
}

async function startContainer(daemon: DockerDaemon): Promise<string> {
  const started = await daemon.run(["run", "--detach", "--interactive", "--network", "none", IMAGE, ...WAIT]);
  return started.stdout.trim();
}

async function importImage(daemon: DockerDaemon, workspace: Workspace): Promise<void> {
  const programs = await guestPrograms(workspace);
  const root = await workspace.makeDir("docker", "image");
  for (const dir of ["bin", "tmp"]) await mkdir(join(root, dir), { recursive: true });
  for (const name of ["true", "say", "floor"] as const) await copyFile(programs[name], join(root, "bin", name));
  const tarball = `${root}.tar`;
  await run("tar", ["--create", "--file", tarball, "--directory", root, "."]);
  await daemon.run(["import", tarball, IMAGE]);
}
