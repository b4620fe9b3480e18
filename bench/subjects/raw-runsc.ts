import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { guestPrograms } from "../guest-programs.ts";
import { listProcesses, processesNaming, proportionalMemory } from "../processes.ts";
import { RunscInstance } from "../runsc/runsc-instance.ts";
import { type RunscTemplate, runscTemplate } from "../runsc/runsc-template.ts";
import { SETTLE_MS, type Subject, type SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeToExit } from "../timed-run.ts";

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\n';
const TRUE_PATH = "/tmp/true";
const FILE_PATH = "/tmp/file";

export const subject: SubjectDefinition = {
  name: "raw-runsc",
  title:
    "runsc run / exec / checkpoint / restore by hand, with the bundle, flags and agent of Sandpiper; files through runsc exec cat",
  async open(workspace) {
    const template = await runscTemplate(workspace);
    const instance = await RunscInstance.prepare(template);
    await instance.start(PING);
    await instance.upload((await guestPrograms(workspace)).true, TRUE_PATH);
    return new RawRunsc(template, instance);
  },
};

class RawRunsc implements Subject {
  readonly #template: RunscTemplate;
  readonly #instance: RunscInstance;

  constructor(template: RunscTemplate, instance: RunscInstance) {
    this.#template = template;
    this.#instance = instance;
  }

  async createToReady(): Promise<number> {
    return this.#timeStart(await RunscInstance.prepare(this.#template), PING);
  }

  async createToFirstOutput(): Promise<number> {
    return this.#timeStart(await RunscInstance.prepare(this.#template, { args: ["/bin/echo", "ready"] }), "");
  }

  execTrue(count: number): Promise<number[]> {
    return repeated(count, () => this.#timeExec([TRUE_PATH], "ignore", "ignore"));
  }

  async writeFile(hostPath: string): Promise<number> {
    const source = openSync(hostPath, "r");
    const tookMs = await this.#timeExec(["/bin/sh", "-c", `cat > ${FILE_PATH}`], source, "ignore");
    closeSync(source);
    return tookMs;
  }

  async readFile(hostPath: string): Promise<number> {
    const target = openSync(hostPath, "w");
    const tookMs = await this.#timeExec(["/bin/cat", FILE_PATH], "ignore", target);
    closeSync(target);
    return tookMs;
  }

  async idleMemory(count: number, signal: AbortSignal): Promise<number[]> {
    await using live = new AsyncDisposableStack();
    const instances: RunscInstance[] = [];
    for (let k = 0; k < count; k++) {
      signal.throwIfAborted();
      const instance = await RunscInstance.prepare(this.#template);
      await instance.start(PING);
      instances.push(live.use(instance));
    }
    await sleep(SETTLE_MS);
    const all = await listProcesses();
    return await Promise.all(instances.map(({ id }) => proportionalMemory(processesNaming(id, all))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#instance[Symbol.asyncDispose]();
  }

  async #timeStart(instance: RunscInstance, line: string): Promise<number> {
    await using _ = instance;
    return await timed(() => instance.start(line));
  }

  #timeExec(command: readonly string[], stdin: "ignore" | number, stdout: "ignore" | number): Promise<number> {
    const args = this.#instance.args("exec", this.#instance.id, ...command);
    return timeToExit(this.#instance.runscPath, args, { stdin, stdout });
  }
}
