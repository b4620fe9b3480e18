import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type InstanceExit, type Sandbox, SandboxError, type Tunnel } from "@sandpiper/core";
import type { Vm } from "../vm/vm-driver.ts";
import { untilEngineAnswers } from "./engine-http.ts";
import { Relay } from "./relay.ts";

const ENGINE_SOCKET = "/run/docker.sock";
const START_ENGINE = "/usr/local/sbin/start-engine";
const ENGINE_LOG = "/var/log/engine.log";
/** The id of the engine's process, by which a later program finds it. */
const ENGINE_PROCESS = "engine";
/** The engine starts within a second with KVM, and takes several seconds without. */
const ENGINE_TIMEOUT_MS = 60_000;
const LOG_LINES = 5;
const SYNC_TIMEOUT_MS = 10_000;

export interface MachineVmOptions extends Pick<Vm, "projectId" | "directory" | "consoleLog"> {
  readonly machine: Sandbox;
  readonly onDestroyed?: (() => Promise<void>) | undefined;
}

/** A machine that the host reaches only through its agent. */
export class MachineVm implements Vm {
  readonly id: string;
  readonly projectId: string;
  readonly directory: string;
  readonly consoleLog: string | undefined;
  readonly exited: Promise<InstanceExit>;
  readonly keepsVolumes = true;
  readonly #machine: Sandbox;
  readonly #relay: Relay;
  readonly #onDestroyed: () => Promise<void>;

  private constructor(options: MachineVmOptions, relay: Relay) {
    const { machine, projectId, directory, consoleLog, onDestroyed = async () => {} } = options;
    this.id = machine.id;
    this.projectId = projectId;
    this.directory = directory;
    this.consoleLog = consoleLog;
    this.#machine = machine;
    this.#relay = relay;
    this.#onDestroyed = onDestroyed;
    this.exited = Promise.race([machine.closed, this.#engineEnd()]);
    // A machine without its engine is unusable.
    this.exited.then(() => this.destroy()).catch(() => {});
  }

  /** Starts the engine in a new machine. */
  static async start(options: MachineVmOptions, signal: AbortSignal): Promise<MachineVm> {
    await options.machine.start([START_ENGINE, ENGINE_SOCKET], { id: ENGINE_PROCESS, user: "root" });
    return await MachineVm.adopt(options, signal);
  }

  /** Connects to an engine that this or an earlier program started. */
  static async adopt(options: MachineVmOptions, signal: AbortSignal): Promise<MachineVm> {
    const { machine, directory } = options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const relay = await Relay.listen({ path: join(directory, "engine.sock") }, () =>
      machine.dial({ path: ENGINE_SOCKET }),
    );
    const vm = new MachineVm(options, relay);
    await vm.#untilAnswering(signal);
    return vm;
  }

  get engineUrl(): string {
    return `unix://${join(this.directory, "engine.sock")}`;
  }

  dial(port: number): Promise<Tunnel> {
    return this.#machine.dial({ port });
  }

  async destroy(): Promise<void> {
    // Writes the caches to their disk; a machine that has ended cannot.
    await this.#machine.exec(["sync"], { user: "root", timeoutMs: SYNC_TIMEOUT_MS }).catch(() => {});
    await this.#machine.destroy();
    await this.#relay[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
    await this.#onDestroyed();
  }

  async #engineEnd(): Promise<InstanceExit> {
    const machine = this.#machine;
    try {
      const engine = await machine.attach(ENGINE_PROCESS);
      await engine.wait();
      return { reason: "crashed", message: `its engine ended${await this.#logTail()}` };
    } catch {
      // The machine itself has ended.
      return await machine.closed;
    }
  }

  async #logTail(): Promise<string> {
    const { stdout } = await this.#machine.exec(["tail", "-n", String(LOG_LINES), ENGINE_LOG], { user: "root" });
    return stdout.trim() === "" ? "" : `: ${stdout.trim()}`;
  }

  async #untilAnswering(signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.timeout(ENGINE_TIMEOUT_MS);
    const ended = new AbortController();
    this.exited.then(({ message }) => ended.abort(engineFailed(this.projectId, message)));
    try {
      await untilEngineAnswers(this.engineUrl, AbortSignal.any([signal, ended.signal, limit]));
    } catch (error) {
      if (error !== limit.reason) throw error;
      const why = `it did not answer within ${ENGINE_TIMEOUT_MS / 1000} s${await this.#logTail()}`;
      throw engineFailed(this.projectId, why);
    }
  }
}

function engineFailed(projectId: string, why: string): SandboxError {
  return new SandboxError("machine_engine", {
    message: `the engine in the machine of project ${projectId} did not start: ${why}`,
    hint: "increase vmDocker.memoryMib, or rebuild the machines' image with `npm run setup docker-image`",
  });
}
