import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type GuestPrograms, guestPrograms } from "../guest-programs.ts";
import { listProcesses, proportionalMemory } from "../processes.ts";
import type { Subject, SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeToExit, timeToFirstByte } from "../timed-run.ts";

export const subject: SubjectDefinition = {
  name: "local-process",
  title: "a bare process on the host, without isolation",
  async open(workspace) {
    const programs = await guestPrograms(workspace);
    return new LocalProcess(programs, join(await workspace.makeDir("local-process"), "file"));
  },
};

type Child = ChildProcessByStdio<Writable, Readable, null>;

class LocalProcess implements Subject {
  readonly #programs: GuestPrograms;
  readonly #filePath: string;

  constructor(programs: GuestPrograms, filePath: string) {
    this.#programs = programs;
    this.#filePath = filePath;
  }

  async createToReady(): Promise<number> {
    const startedAt = performance.now();
    const child = this.#start();
    await ping(child);
    const tookMs = performance.now() - startedAt;
    await end(child);
    return tookMs;
  }

  createToFirstOutput(): Promise<number> {
    return timeToFirstByte(this.#programs.say, []);
  }

  execTrue(count: number): Promise<number[]> {
    return repeated(count, () => timeToExit(this.#programs.true, []));
  }

  async ping(count: number): Promise<number[]> {
    const child = this.#start();
    const samples = await repeated(count, () => timed(() => ping(child)));
    await end(child);
    return samples;
  }

  writeFile(hostPath: string): Promise<number> {
    return timed(() => copyFile(hostPath, this.#filePath));
  }

  readFile(hostPath: string): Promise<number> {
    return timed(() => copyFile(this.#filePath, hostPath));
  }

  async idleMemory(count: number): Promise<number[]> {
    const children = Array.from({ length: count }, () => this.#start());
    try {
      for (const child of children) await ping(child);
      const all = await listProcesses();
      return await Promise.all(children.map(({ pid }) => proportionalMemory(all.filter((one) => one.id === pid))));
    } finally {
      await Promise.all(children.map(end));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #start() {
    return spawn(this.#programs.floor, [this.#programs.true], { stdio: ["pipe", "pipe", "inherit"] });
  }
}

async function ping({ stdin, stdout }: Child): Promise<void> {
  stdin.write("p\n");
  await once(stdout, "data");
}

async function end(child: Child): Promise<void> {
  child.stdin.end();
  await once(child, "close");
}
