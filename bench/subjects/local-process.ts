import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { type GuestPrograms, guestPrograms } from "../guest-programs.ts";
import { listProcesses, proportionalMemory } from "../processes.ts";
import type { Subject, SubjectDefinition } from "../subject.ts";
import { timeToExit, timeToFirstByte } from "../timed-run.ts";

export const subject: SubjectDefinition = {
  name: "local-process",
  title: "a bare process on the host, without isolation",
  async open(workspace) {
    const programs = await guestPrograms(workspace);
    return new LocalProcess(programs, join(await workspace.makeDir("local-process"), "file"));
  },
};

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
    child.stdin.write("p\n");
    await once(child.stdout, "data");
    const tookMs = performance.now() - startedAt;
    child.stdin.end();
    await once(child, "close");
    return tookMs;
  }

  createToFirstOutput(): Promise<number> {
    return timeToFirstByte(this.#programs.say, []);
  }

  async execTrue(count: number): Promise<number[]> {
    const samples: number[] = [];
    for (let k = 0; k < count; k++) samples.push(await timeToExit(this.#programs.true, []));
    return samples;
  }

  async ping(count: number): Promise<number[]> {
    const child = this.#start();
    const samples: number[] = [];
    for (let k = 0; k < count; k++) {
      const startedAt = performance.now();
      child.stdin.write("p\n");
      await once(child.stdout, "data");
      samples.push(performance.now() - startedAt);
    }
    child.stdin.end();
    await once(child, "close");
    return samples;
  }

  async writeFile(hostPath: string): Promise<number> {
    return timeCopy(hostPath, this.#filePath);
  }

  async readFile(hostPath: string): Promise<number> {
    return timeCopy(this.#filePath, hostPath);
  }

  async idleMemory(count: number): Promise<number[]> {
    const children = Array.from({ length: count }, () => this.#start());
    try {
      for (const child of children) {
        child.stdin.write("p\n");
        await once(child.stdout, "data");
      }
      const all = await listProcesses();
      return await Promise.all(children.map(({ pid }) => proportionalMemory(all.filter((one) => one.id === pid))));
    } finally {
      await Promise.all(
        children.map((child) => {
          child.stdin.end();
          return once(child, "close");
        }),
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #start() {
    return spawn(this.#programs.floor, [this.#programs.true], { stdio: ["pipe", "pipe", "inherit"] });
  }
}

async function timeCopy(from: string, to: string): Promise<number> {
  const startedAt = performance.now();
  await copyFile(from, to);
  return performance.now() - startedAt;
}
