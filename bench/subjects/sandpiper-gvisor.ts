import { createReadStream } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, UPLOAD_PIECE_BYTES } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { guestPrograms } from "../guest-programs.ts";
import { listProcesses, processesNaming, proportionalMemory } from "../processes.ts";
import { makeStaticImage } from "../static-image.ts";
import { EXEC_INSTANCES, nextInTurn, SETTLE_MS, type Subject, type SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeTrue } from "../timed-run.ts";

const TRUE_PATH = "/tmp/true";
const FILE_PATH = "/tmp/file";
const FORGET_MS = 5;

export const subject: SubjectDefinition = {
  name: "sandpiper-gvisor",
  title: "Sandpiper's gvisor provider, embedded in a Node program, with its default image and limits",
  async open(workspace) {
    const home = await workspace.makeDir("sandpiper");
    const program = await readFile((await guestPrograms(workspace)).true);
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      const sandbox = workspace.own(await createSandbox({ home, signal: workspace.signal }));
      await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
      sandboxes.push(sandbox);
    }
    const rootfs = await workspace.makeDir("static-image");
    await makeStaticImage(workspace, rootfs);
    const speaker = workspace.own(await createSandbox({ home, rootfs, signal: workspace.signal }));
    return new SandpiperGvisor(home, sandboxes, speaker);
  },
};

class SandpiperGvisor implements Subject {
  readonly #home: string;
  readonly #sandboxes: Sandbox[];
  /** Receives the files. */
  readonly #storage: Sandbox;
  /** Has docker's image. */
  readonly #speaker: Sandbox;

  constructor(home: string, sandboxes: Sandbox[], speaker: Sandbox) {
    this.#speaker = speaker;
    this.#home = home;
    this.#sandboxes = sandboxes;
    this.#storage = nextInTurn(sandboxes);
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

  execTrue(count: number, restMs: number): Promise<number[]> {
    return timeTrue(nextInTurn(this.#sandboxes), TRUE_PATH, { count, restMs });
  }

  async execSay(count: number): Promise<number[]> {
    return await repeated(count, async () => {
      const startedAt = performance.now();
      const { stdout } = await this.#speaker.exec(["/bin/say"]);
      const tookMs = performance.now() - startedAt;
      if (stdout !== "ready\n") throw new Error(`say in ${this.#speaker.id} printed ${JSON.stringify(stdout)}`);
      return tookMs;
    });
  }

  async ping(count: number): Promise<number[]> {
    const sandbox = nextInTurn(this.#sandboxes);
    // A busy sandbox counts as healthy without a ping, and an exec is removed only after its result.
    await sleep(FORGET_MS);
    return await repeated(count, async () => {
      const startedAt = performance.now();
      const isHealthy = await sandbox.isHealthy();
      const tookMs = performance.now() - startedAt;
      if (!isHealthy) throw new Error(`sandbox ${sandbox.id} did not answer a ping`);
      return tookMs;
    });
  }

  writeFile(hostPath: string): Promise<number> {
    return timed(() =>
      this.#storage.files.write(FILE_PATH, createReadStream(hostPath, { highWaterMark: UPLOAD_PIECE_BYTES })),
    );
  }

  async readFile(hostPath: string): Promise<number> {
    const startedAt = performance.now();
    await using file = await open(hostPath, "w");
    for await (const bytes of this.#storage.files.read(FILE_PATH, { lendsMemory: true })) await file.writeFile(bytes);
    return performance.now() - startedAt;
  }

  writeBytes(bytes: Uint8Array): Promise<number> {
    return timed(() => this.#storage.writeFile(FILE_PATH, bytes));
  }

  async readBytes(check: (bytes: Uint8Array, offset: number) => void): Promise<number> {
    const startedAt = performance.now();
    let offset = 0;
    for await (const bytes of this.#storage.files.read(FILE_PATH, { lendsMemory: true })) {
      check(bytes, offset);
      offset += bytes.length;
    }
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

  async [Symbol.asyncDispose](): Promise<void> {}
}
