import { createReadStream, createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { guestPrograms } from "../guest-programs.ts";
import { listProcesses, processesNaming, proportionalMemory } from "../processes.ts";
import { SETTLE_MS, type Subject, type SubjectDefinition } from "../subject.ts";

const TRUE_PATH = "/tmp/true";
const FILE_PATH = "/tmp/file";
const READ_AHEAD_BYTES = 1024 * 1024;

export const subject: SubjectDefinition = {
  name: "sandpiper-gvisor",
  title: "Sandpiper's gvisor provider, embedded in a Node program, with its default image and limits",
  async open(workspace) {
    const home = await workspace.makeDir("sandpiper");
    const sandbox = await createSandbox({ home, signal: workspace.signal });
    await sandbox.files.write(TRUE_PATH, await readFile((await guestPrograms(workspace)).true), { mode: 0o755 });
    return new SandpiperGvisor(home, sandbox);
  },
};

class SandpiperGvisor implements Subject {
  readonly #home: string;
  readonly #sandbox: Sandbox;

  constructor(home: string, sandbox: Sandbox) {
    this.#home = home;
    this.#sandbox = sandbox;
  }

  async createToReady(): Promise<number> {
    const startedAt = performance.now();
    await using _ = await createSandbox({ home: this.#home });
    return performance.now() - startedAt;
  }

  async createToFirstOutput(): Promise<number> {
    const startedAt = performance.now();
    let tookMs: number | undefined;
    await using sandbox = await createSandbox({ home: this.#home });
    const onStdout = () => {
      tookMs ??= performance.now() - startedAt;
    };
    await sandbox.exec(["/bin/echo", "ready"], { onStdout });
    if (tookMs === undefined) throw new Error(`echo in ${sandbox.id} printed nothing`);
    return tookMs;
  }

  async execTrue(count: number): Promise<number[]> {
    const samples: number[] = [];
    for (let k = 0; k < count; k++) {
      const startedAt = performance.now();
      const { exitCode } = await this.#sandbox.exec([TRUE_PATH]);
      samples.push(performance.now() - startedAt);
      if (exitCode !== 0) throw new Error(`true in ${this.#sandbox.id} exited with ${exitCode}`);
    }
    return samples;
  }

  async ping(count: number): Promise<number[]> {
    const samples: number[] = [];
    for (let k = 0; k < count; k++) {
      const startedAt = performance.now();
      const isHealthy = await this.#sandbox.isHealthy();
      samples.push(performance.now() - startedAt);
      if (!isHealthy) throw new Error(`sandbox ${this.#sandbox.id} did not answer a ping`);
    }
    return samples;
  }

  async writeFile(hostPath: string): Promise<number> {
    const startedAt = performance.now();
    await this.#sandbox.files.write(FILE_PATH, createReadStream(hostPath, { highWaterMark: READ_AHEAD_BYTES }));
    return performance.now() - startedAt;
  }

  async readFile(hostPath: string): Promise<number> {
    const startedAt = performance.now();
    await pipeline(
      this.#sandbox.files.read(FILE_PATH),
      createWriteStream(hostPath, { highWaterMark: READ_AHEAD_BYTES }),
    );
    return performance.now() - startedAt;
  }

  async idleMemory(count: number, signal: AbortSignal): Promise<number[]> {
    await using live = new AsyncDisposableStack();
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < count; k++) sandboxes.push(live.use(await createSandbox({ home: this.#home, signal })));
    await sleep(SETTLE_MS);
    const all = await listProcesses();
    return await Promise.all(sandboxes.map(({ id }) => proportionalMemory(processesNaming(id, all))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.destroy();
  }
}
