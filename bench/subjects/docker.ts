import { setTimeout as sleep } from "node:timers/promises";
import { benchDaemon, IMAGE, WAIT } from "../docker/bench-image.ts";
import type { DockerDaemon } from "../docker/docker-daemon.ts";
import { listProcesses, processesNaming, proportionalMemory } from "../processes.ts";
import { SETTLE_MS, type Subject, type SubjectDefinition } from "../subject.ts";
import { repeated, timeToExit, timeToFirstByte } from "../timed-run.ts";

export const subject: SubjectDefinition = {
  name: "docker",
  title: "docker run / exec / cp, Debian's Docker Engine with runc, an image of static programs",
  async open(workspace) {
    const daemon = await benchDaemon(workspace);
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

  execTrue(count: number): Promise<number[]> {
    return repeated(count, () => this.#time(["exec", this.#container, "/bin/true"]));
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
      return await Promise.all(containers.map((container) => proportionalMemory(processesNaming(container, all))));
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
