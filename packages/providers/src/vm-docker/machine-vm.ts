import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type InstanceExit, type Sandbox, SandboxError, type Vm } from "@sandpiper/core";
import { callEngine } from "./engine-http.ts";
import { EngineRelay } from "./engine-relay.ts";

/** Inside the machine. */
const ENGINE_SOCKET = "/run/docker.sock";
const START_ENGINE = "/usr/local/sbin/start-engine";
const ENGINE_LOG = "/var/log/engine.log";
/** Of the process that the engine is, by which the next program finds it. */
const ENGINE_PROCESS = "engine";
/** Seconds where code is translated, less than one elsewhere. */
const ENGINE_TIMEOUT_MS = 60_000;
const RETRY_MS = 100;
const LOG_LINES = 5;

export interface MachineVmOptions {
  readonly machine: Sandbox;
  readonly projectId: string;
  readonly directory: string;
  readonly consoleLog: string | undefined;
}

/** A machine that is reached through its agent alone. */
export class MachineVm implements Vm {
  readonly id: string;
  readonly projectId: string;
  readonly directory: string;
  readonly consoleLog: string | undefined;
  readonly exited: Promise<InstanceExit>;
  readonly #machine: Sandbox;
  readonly #relay: EngineRelay;

  private constructor({ machine, projectId, directory, consoleLog }: MachineVmOptions, relay: EngineRelay) {
    this.id = machine.id;
    this.projectId = projectId;
    this.directory = directory;
    this.consoleLog = consoleLog;
    this.#machine = machine;
    this.#relay = relay;
    this.exited = Promise.race([machine.closed, this.#engineEnd()]);
    // Nothing of it is of use to anybody any more.
    this.exited.then(() => this.destroy()).catch(() => {});
  }

  /** Starts the engine in a new machine. */
  static async start(options: MachineVmOptions, signal: AbortSignal): Promise<MachineVm> {
    await options.machine.start([START_ENGINE, ENGINE_SOCKET], { id: ENGINE_PROCESS, user: "root" });
    return await MachineVm.adopt(options, signal);
  }

  /** Its engine was started before, by this program or another. */
  static async adopt(options: MachineVmOptions, signal: AbortSignal): Promise<MachineVm> {
    const { machine, directory } = options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const relay = await EngineRelay.listen(join(directory, "engine.sock"), () => machine.dial({ path: ENGINE_SOCKET }));
    const vm = new MachineVm(options, relay);
    await vm.#untilAnswering(signal);
    return vm;
  }

  get engineUrl(): string {
    return `unix://${this.#relay.path}`;
  }

  async destroy(): Promise<void> {
    await this.#machine.destroy();
    await this.#relay[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** A machine without its engine is of no use. */
  async #engineEnd(): Promise<InstanceExit> {
    const machine = this.#machine;
    try {
      const engine = await machine.attach(ENGINE_PROCESS);
      await engine.wait();
      return { reason: "crashed", message: `its engine ended${await this.#lastWords()}` };
    } catch {
      // The machine itself has ended.
      return await machine.closed;
    }
  }

  async #lastWords(): Promise<string> {
    const { stdout } = await this.#machine.exec(["tail", "-n", String(LOG_LINES), ENGINE_LOG], { user: "root" });
    return stdout.trim() === "" ? "" : `: ${stdout.trim()}`;
  }

  async #untilAnswering(signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.timeout(ENGINE_TIMEOUT_MS);
    const ended = new AbortController();
    this.exited.then(({ message }) => ended.abort(engineSilent(this.projectId, message)));
    const any = AbortSignal.any([signal, limit, ended.signal]);
    for (;;) {
      try {
        await callEngine(this.engineUrl, { method: "GET", path: "/_ping", signal: any });
        return;
      } catch {
        signal.throwIfAborted();
        ended.signal.throwIfAborted();
        if (limit.aborted) {
          const words = `it did not answer within ${ENGINE_TIMEOUT_MS / 1000} s${await this.#lastWords()}`;
          throw engineSilent(this.projectId, words);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function engineSilent(projectId: string, why: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "machine_engine",
    message: `the engine in the machine of project ${projectId} did not start: ${why}`,
    hint: "give machines more memory with vmDocker.memoryMib, or build their image again with `npm run setup docker-image`",
  });
}
