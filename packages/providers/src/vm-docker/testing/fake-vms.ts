import { type InstanceExit, SandboxError } from "@sandpiper/core";
import { unlessAborted } from "../../host/unless-aborted.ts";
import type { OrphanVm, StartVmOptions, Vm, VmDriver } from "../vm/vm-driver.ts";

export class FakeVm implements Vm {
  readonly id: string;
  readonly projectId: string;
  readonly engineUrl: string;
  readonly directory: string;
  readonly consoleLog: string;
  readonly #exited = Promise.withResolvers<InstanceExit>();
  readonly exited = this.#exited.promise;
  isDestroyed = false;
  /** Thrown by the next `destroy`. */
  destroyError: unknown;

  constructor(id: string, projectId: string) {
    this.id = id;
    this.projectId = projectId;
    this.engineUrl = `unix:///${id}.sock`;
    this.directory = `/${id}`;
    this.consoleLog = `/${id}.log`;
  }

  crash(message: string): void {
    this.#exited.resolve({ reason: "crashed", message });
  }

  async destroy(): Promise<void> {
    const error = this.destroyError;
    this.destroyError = undefined;
    if (error !== undefined) throw error;
    this.isDestroyed = true;
    this.#exited.resolve({ reason: "destroyed", message: "it was destroyed" });
  }
}

/** Machines in memory that start and fail when the test decides. */
export class FakeVmDriver implements VmDriver {
  readonly name = "qemu";
  readonly started: FakeVm[] = [];
  readonly adopted: FakeVm[] = [];
  readonly removed: string[] = [];
  readonly starts: StartVmOptions[] = [];
  orphans: OrphanVm[] = [];
  /** Thrown by the next start. */
  startError: unknown;
  /** Every start waits for it. */
  gate: Promise<void> | undefined;

  async probe() {
    return { available: true, detail: "machines in memory" } as const;
  }

  async start(projectId: string, options: StartVmOptions): Promise<Vm> {
    this.starts.push(options);
    const vm = new FakeVm(`vm-${this.starts.length}`, projectId);
    await this.#passGate(options.signal);
    const error = this.startError;
    this.startError = undefined;
    if (error !== undefined) throw error;
    this.started.push(vm);
    return vm;
  }

  async listOrphans(): Promise<readonly OrphanVm[]> {
    return this.orphans.splice(0);
  }

  async adopt(id: string): Promise<Vm> {
    if (id === "mute") throw new SandboxError("instance_ended", { message: "it does not answer" });
    if (id === "claimed") throw new SandboxError("instance_claimed", { message: id });
    const vm = new FakeVm(id, id.replace(/^of-/, ""));
    this.adopted.push(vm);
    return vm;
  }

  async remove(id: string): Promise<void> {
    this.removed.push(id);
  }

  async #passGate(signal: AbortSignal): Promise<void> {
    const { gate = Promise.resolve() } = this;
    await unlessAborted(() => gate, signal);
  }
}
