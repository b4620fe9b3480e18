import type { Clock } from "../clock.ts";
import type { InstanceExit } from "../provider.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { Vm, VmDriver, VmResources } from "./vm-driver.ts";
import type { GetVmOptions, VmInfo, VmState } from "./vm-manager.ts";

export interface ProjectVmOptions {
  readonly projectId: string;
  readonly driver: VmDriver;
  readonly resources: VmResources;
  readonly idleMs: number;
  readonly clock: Clock;
}

/** The one machine of a project, now and when it is started again. */
export class ProjectVm {
  readonly #options: ProjectVmOptions;
  readonly #sessions = new Set<string>();
  #state: VmState = "stopped";
  #error: SandboxError | undefined;
  /** Also of one that could not be ended: that is tried again. */
  #vm: Vm | undefined;
  #starting: Promise<Vm> | undefined;
  #stopping: Promise<void> | undefined;
  #giveUp = new AbortController();
  #cancelIdle: (() => void) | undefined;

  constructor(options: ProjectVmOptions) {
    this.#options = options;
  }

  get info(): VmInfo {
    const { projectId } = this.#options;
    const consoleLog = this.#vm?.consoleLog;
    return { projectId, state: this.#state, sessions: [...this.#sessions], error: this.#error, consoleLog };
  }

  /** No machine is here, or on its way. */
  get isFree(): boolean {
    return this.#starting === undefined && this.#stopping === undefined && this.#vm === undefined;
  }

  add(sessionId: string): void {
    this.#sessions.add(sessionId);
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
  }

  async release(sessionId: string): Promise<void> {
    if (!this.#sessions.delete(sessionId)) return;
    await this.#idleIfUnused();
  }

  /** All who ask while it starts wait for the same one; after a failure the next one tries again. */
  ready(options: Pick<GetVmOptions, "onProgress">): Promise<Vm> {
    if (this.#state === "ready" && this.#vm !== undefined) return Promise.resolve(this.#vm);
    return this.#begin(() => this.#start(options));
  }

  /** With the sessions that are found in it. */
  async takeOver(adopt: () => Promise<Vm>, sessionsOf: (vm: Vm) => Promise<readonly string[]>): Promise<void> {
    await this.#begin(async () => {
      const vm = await adopt();
      for (const session of await sessionsOf(vm)) this.add(session);
      return vm;
    });
  }

  /** Ends it whatever it does. */
  async end(): Promise<void> {
    this.#giveUp.abort(removed(this.#options.projectId));
    await this.#starting?.catch(() => {});
    await this.#stop();
  }

  #begin(make: () => Promise<Vm>): Promise<Vm> {
    if (this.#starting === undefined) {
      this.#giveUp = new AbortController();
      this.#starting = this.#enter(make, this.#giveUp.signal).finally(() => {
        this.#starting = undefined;
      });
    }
    return this.#starting;
  }

  async #enter(make: () => Promise<Vm>, signal: AbortSignal): Promise<Vm> {
    await this.#stopping?.catch(() => {});
    this.#state = "starting";
    this.#error = undefined;
    try {
      signal.throwIfAborted();
      await this.#vm?.destroy();
      this.#vm = undefined;
      const vm = await make();
      this.#vm = vm;
      signal.throwIfAborted();
      this.#state = "ready";
      vm.exited.then((exit) => this.#ended(vm, exit));
      // Whoever asked for it may have gone meanwhile.
      await this.#idleIfUnused();
      return vm;
    } catch (thrown) {
      this.#state = "error";
      this.#error = SandboxError.from(thrown);
      throw thrown;
    }
  }

  #start({ onProgress }: Pick<GetVmOptions, "onProgress">): Promise<Vm> {
    const { driver, projectId, resources } = this.#options;
    return driver.start(projectId, { resources, onProgress, signal: this.#giveUp.signal });
  }

  async #idleIfUnused(): Promise<void> {
    if (this.#state !== "ready" || this.#sessions.size > 0) return;
    const { clock, idleMs } = this.#options;
    if (idleMs === 0) return await this.#stop();
    this.#cancelIdle?.();
    // What cannot be ended is in state error, and tried again.
    this.#cancelIdle = clock.schedule(idleMs, () => void this.#stop().catch(() => {}));
  }

  #stop(): Promise<void> {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#stopping ??= this.#destroy().finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  }

  async #destroy(): Promise<void> {
    // Those who have this one are told by the machine; whoever comes from now on waits for the next.
    this.#sessions.clear();
    this.#state = "stopped";
    this.#error = undefined;
    try {
      await this.#vm?.destroy();
      this.#vm = undefined;
    } catch (thrown) {
      this.#state = "error";
      this.#error = SandboxError.from(thrown);
      throw this.#error;
    }
  }

  /** By itself: those who used it are told by the machine, and whoever comes next gets a new one. */
  #ended(vm: Vm, { message }: InstanceExit): void {
    if (this.#vm !== vm || this.#state !== "ready") return;
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#sessions.clear();
    this.#state = "error";
    this.#error = new SandboxError("unavailable", {
      reason: "machine_ended",
      message: `the machine of project ${this.#options.projectId} has ended: ${message}`,
      hint: "create a new sandbox, which starts a new machine",
    });
  }
}

function removed(projectId: string): SandboxError {
  return new SandboxError("canceled", {
    reason: "machine_removed",
    message: `the machine of project ${projectId} was removed while it started`,
    hint: "create a new sandbox, which starts a new machine",
  });
}
