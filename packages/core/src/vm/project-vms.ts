import { abortError } from "../abort-error.ts";
import { type Clock, systemClock } from "../clock.ts";
import { KeyedMutex } from "../keyed-mutex.ts";
import { SandboxError } from "../sandbox-error.ts";
import { ProjectVm } from "./project-vm.ts";
import type { OrphanVm, Vm, VmDriver, VmResources } from "./vm-driver.ts";
import type { GetVmOptions, VmInfo, VmManager } from "./vm-manager.ts";

export const DEFAULT_VM_IDLE_MS = 30 * 60_000;

export interface ProjectVmsOptions {
  readonly driver: VmDriver;
  /** Of each machine. */
  readonly resources: VmResources;
  /** How long a machine without sessions goes on; with 0 it ends with its last session. */
  readonly idleMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** The life of projects' machines, whatever runs them. */
export class ProjectVms implements VmManager {
  readonly #driver: VmDriver;
  readonly #resources: VmResources;
  readonly #idleMs: number;
  readonly #clock: Clock;
  readonly #vms = new Map<string, ProjectVm>();
  readonly #turns = new KeyedMutex<"reconcile">();
  #isShutDown = false;

  constructor({ driver, resources, idleMs = DEFAULT_VM_IDLE_MS, clock = systemClock }: ProjectVmsOptions) {
    this.#driver = driver;
    this.#resources = resources;
    this.#idleMs = idleMs;
    this.#clock = clock;
  }

  async getOrCreateVm(projectId: string, sessionId: string, options: GetVmOptions = {}): Promise<Vm> {
    const { signal } = options;
    const doing = `starting the machine of project ${projectId}`;
    if (signal?.aborted) throw abortError(signal, doing);
    if (this.#isShutDown) throw shutDown(projectId);
    const vm = this.#of(projectId);
    vm.add(sessionId);
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(abortError(signal as AbortSignal, doing));
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await Promise.race([vm.ready(options), aborted.promise]);
    } catch (thrown) {
      await vm.release(sessionId);
      throw SandboxError.from(thrown);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async releaseVm(projectId: string, sessionId: string): Promise<void> {
    await this.#vms.get(projectId)?.release(sessionId);
  }

  async removeVm(projectId: string): Promise<void> {
    const vm = this.#vms.get(projectId);
    await vm?.end();
    // It stays where it is known, should somebody have asked for it again meanwhile.
    if (vm?.info.state === "stopped" && vm.info.sessions.length === 0) this.#vms.delete(projectId);
  }

  reconcile(sessionsOf: (vm: Vm) => Promise<readonly string[]>): Promise<void> {
    // Two that find the same machine would both take it over.
    return this.#turns.run("reconcile", async () => {
      const orphans = await this.#driver.listOrphans();
      await Promise.all(orphans.map((orphan) => this.#takeOver(orphan, sessionsOf)));
    });
  }

  list(): readonly VmInfo[] {
    return [...this.#vms.values()].map(({ info }) => info);
  }

  async shutdown(): Promise<void> {
    this.#isShutDown = true;
    await Promise.all([...this.#vms.values()].map((vm) => vm.end()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  #of(projectId: string): ProjectVm {
    const known = this.#vms.get(projectId);
    if (known !== undefined) return known;
    const [driver, resources, idleMs, clock] = [this.#driver, this.#resources, this.#idleMs, this.#clock];
    const vm = new ProjectVm({ projectId, driver, resources, idleMs, clock });
    this.#vms.set(projectId, vm);
    return vm;
  }

  async #takeOver({ id, projectId, isRunning }: OrphanVm, sessionsOf: (vm: Vm) => Promise<readonly string[]>) {
    if (isRunning && !this.#isShutDown && this.#of(projectId).isFree) {
      try {
        return await this.#of(projectId).takeOver(() => this.#driver.adopt(id), sessionsOf);
      } catch (thrown) {
        // Another program was faster. One that cannot be taken over for any other reason is of no use to anybody.
        if (SandboxError.from(thrown).code === "failed_precondition") return;
      }
    }
    await this.#driver.remove(id);
  }
}

function shutDown(projectId: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "machines_shut_down",
    message: `there is no machine for project ${projectId}: this program is shutting down`,
    hint: "try again when it has started anew",
  });
}
