import { type Clock, type CreateInstanceOptions, SandboxError, systemClock } from "@sandpiper/core";
import { Semaphore } from "../../host/semaphore.ts";
import { unlessAborted } from "../../host/unless-aborted.ts";
import { ProjectVm, type ProjectVmOptions, type VmInfo } from "./project-vm.ts";
import type { OrphanVm, Vm, VmDriver, VmResources } from "./vm-driver.ts";

export const DEFAULT_VM_IDLE_MS = 30 * 60_000;

export interface ProjectVmsOptions {
  readonly driver: VmDriver;
  /** The size of each machine. */
  readonly resources: VmResources;
  /** How long a machine without sessions keeps running; 0 stops it with its last session. */
  readonly idleMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

export interface GetVmOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  /** Ends the caller's wait; the start continues, because other callers may share it. */
  readonly signal?: AbortSignal | undefined;
}

/** One machine for each project, for as long as a session uses it, and for the idle time after that. */
export class ProjectVms implements AsyncDisposable {
  readonly #options: Omit<ProjectVmOptions, "projectId">;
  readonly #vms = new Map<string, ProjectVm>();
  readonly #reconciling = new Semaphore(1);
  #isShutDown = false;

  constructor({ driver, resources, idleMs = DEFAULT_VM_IDLE_MS, clock = systemClock }: ProjectVmsOptions) {
    this.#options = { driver, resources, idleMs, clock };
  }

  /** The size of each machine. */
  get resources(): VmResources {
    return this.#options.resources;
  }

  /** Returns the project's machine, and starts it if necessary. The session holds it until `releaseVm`. */
  async getOrCreateVm(projectId: string, sessionId: string, options: GetVmOptions = {}): Promise<Vm> {
    const { signal = new AbortController().signal } = options;
    if (signal.aborted) throw canceled(projectId, signal);
    if (this.#isShutDown) throw shutDown(projectId);
    const vm = this.#of(projectId);
    vm.add(sessionId);
    try {
      return await unlessAborted(() => vm.ready(options), signal);
    } catch (thrown) {
      await vm.release(sessionId);
      throw signal.aborted ? canceled(projectId, signal) : SandboxError.from(thrown);
    }
  }

  /** A machine without sessions stops after its idle time. */
  async releaseVm(projectId: string, sessionId: string): Promise<void> {
    await this.#vms.get(projectId)?.release(sessionId);
  }

  /** Stops the machine even while sessions use it; they see that it ended. */
  async removeVm(projectId: string): Promise<void> {
    const vm = this.#vms.get(projectId);
    await vm?.end();
    // A caller may have asked for the machine again in the meantime.
    if (vm?.info.state === "stopped" && vm.info.sessions.length === 0) this.#vms.delete(projectId);
  }

  /**
   * Adopts the running machines of programs that ended, with the sessions that `sessionsOf` finds in each, and removes what is
   * left of the others. Runs one at a time: two would both adopt the same machine.
   */
  reconcile(sessionsOf: (vm: Vm) => Promise<readonly string[]>): Promise<void> {
    return this.#reconciling.run(async () => {
      const orphans = await this.#options.driver.listOrphans();
      await Promise.all(orphans.map((orphan) => this.#takeOver(orphan, sessionsOf)));
    }, new AbortController().signal);
  }

  list(): readonly VmInfo[] {
    return [...this.#vms.values()].map(({ info }) => info);
  }

  /** Stops all machines, and starts no more. */
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
    const vm = new ProjectVm({ projectId, ...this.#options });
    this.#vms.set(projectId, vm);
    return vm;
  }

  async #takeOver({ id, projectId, isRunning }: OrphanVm, sessionsOf: (vm: Vm) => Promise<readonly string[]>) {
    if (isRunning && !this.#isShutDown && this.#of(projectId).isFree) {
      try {
        return await this.#of(projectId).takeOver(() => this.#options.driver.adopt(id), sessionsOf);
      } catch (thrown) {
        // Another program adopted it first. After any other failure the machine is unusable, and is removed below.
        if (SandboxError.from(thrown).code === "failed_precondition") return;
      }
    }
    await this.#options.driver.remove(id);
  }
}

function shutDown(projectId: string): SandboxError {
  return new SandboxError("machines_shut_down", {
    message: `cannot start a machine for project ${projectId}: this program is shutting down`,
    hint: "retry after it has restarted",
  });
}

function canceled(projectId: string, { reason }: AbortSignal): SandboxError {
  if (reason instanceof SandboxError) return reason;
  return new SandboxError("aborted", {
    message: `the caller canceled the start of the machine of project ${projectId}`,
    cause: reason,
  });
}
