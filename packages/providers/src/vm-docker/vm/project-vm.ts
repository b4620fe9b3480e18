import { createHash } from "node:crypto";
import { type Clock, type CreateInstanceOptions, type InstanceExit, SandboxError } from "@sandpiper/core";
import type { Vm, VmDriver, VmResources } from "./vm-driver.ts";

const ID_DIGITS = 16;

export type VmState = "starting" | "ready" | "error" | "stopped";

export interface VmInfo {
  /** Follows from the project, so that it stays the same for each of its machines. */
  readonly id: string;
  readonly projectId: string;
  readonly state: VmState;
  /** The sessions that use the machine. */
  readonly sessions: readonly string[];
  /** Why the machine failed, in state `error`. */
  readonly error: SandboxError | undefined;
  readonly consoleLog: string | undefined;
  /** In state `ready`, when it entered that state. */
  readonly startedAt: Date | undefined;
}

export interface ProjectVmOptions {
  readonly projectId: string;
  readonly driver: VmDriver;
  readonly resources: VmResources;
  readonly idleMs: number;
  readonly clock: Clock;
}

/** A project's one machine, across restarts. */
export class ProjectVm {
  readonly #options: ProjectVmOptions;
  readonly #sessions = new Set<string>();
  #state: VmState = "stopped";
  #error: SandboxError | undefined;
  /** Kept when `destroy` failed, so that the next stop or start retries it. */
  #vm: Vm | undefined;
  #starting: Promise<Vm> | undefined;
  #stopping: Promise<void> | undefined;
  #giveUp = new AbortController();
  #cancelIdle: (() => void) | undefined;
  #startedAt: Date | undefined;

  constructor(options: ProjectVmOptions) {
    this.#options = options;
  }

  get info(): VmInfo {
    const { projectId } = this.#options;
    return {
      id: machineId(projectId),
      projectId,
      state: this.#state,
      sessions: [...this.#sessions],
      error: this.#error,
      consoleLog: this.#vm?.consoleLog,
      startedAt: this.#state === "ready" ? this.#startedAt : undefined,
    };
  }

  /** No machine runs, starts or stops. */
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

  /** Callers during a start share it; the first call after a failure starts the machine again. */
  ready(options: Pick<CreateInstanceOptions, "onProgress">): Promise<Vm> {
    if (this.#state === "ready" && this.#vm !== undefined) return Promise.resolve(this.#vm);
    return this.#begin(() => this.#start(options));
  }

  /** Adopts a running machine together with the sessions found in it. */
  async takeOver(adopt: () => Promise<Vm>, sessionsOf: (vm: Vm) => Promise<readonly string[]>): Promise<void> {
    await this.#begin(async () => {
      const vm = await adopt();
      for (const session of await sessionsOf(vm)) this.add(session);
      return vm;
    });
  }

  /** Stops the machine in any state. */
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
      this.#startedAt = this.#options.clock.now();
      vm.exited.then((exit) => this.#ended(vm, exit));
      // All callers may have canceled during the start.
      await this.#idleIfUnused();
      return vm;
    } catch (thrown) {
      this.#state = "error";
      this.#error = SandboxError.from(thrown);
      throw thrown;
    }
  }

  #start({ onProgress }: Pick<CreateInstanceOptions, "onProgress">): Promise<Vm> {
    const { driver, projectId, resources } = this.#options;
    return driver.start(projectId, { resources, onProgress, signal: this.#giveUp.signal });
  }

  async #idleIfUnused(): Promise<void> {
    if (this.#state !== "ready" || this.#sessions.size > 0) return;
    const { clock, idleMs } = this.#options;
    if (idleMs === 0) return await this.#stop();
    this.#cancelIdle?.();
    // A machine that fails to stop enters state `error`; the next start retries it.
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
    // Current users learn of the end from `vm.exited`; later callers get the next machine.
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

  /** The machine ended without a stop: `vm.exited` informs its users, and the next caller gets a new machine. */
  #ended(vm: Vm, exit: InstanceExit): void {
    if (this.#vm !== vm || this.#state !== "ready") return;
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#sessions.clear();
    this.#state = "error";
    this.#error = machineEnded(vm, exit);
  }
}

export function machineEnded({ projectId }: Vm, { message }: InstanceExit): SandboxError {
  return new SandboxError("machine_ended", {
    message: `the machine of project ${projectId} has ended: ${message}`,
    hint: "create a new sandbox; that starts a new machine",
  });
}

function removed(projectId: string): SandboxError {
  return new SandboxError("machine_removed", {
    message: `the machine of project ${projectId} was removed during its start`,
    hint: "create a new sandbox; that starts a new machine",
  });
}

function machineId(projectId: string): string {
  return createHash("sha256").update(projectId).digest("hex").slice(0, ID_DIGITS);
}
