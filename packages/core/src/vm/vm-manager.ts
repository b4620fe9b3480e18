import type { CreateInstanceOptions } from "../provider.ts";
import type { SandboxError } from "../sandbox-error.ts";
import type { Vm } from "./vm-driver.ts";

export type VmState = "starting" | "ready" | "error" | "stopped";

export interface VmInfo {
  readonly projectId: string;
  readonly state: VmState;
  /** Who uses it. */
  readonly sessions: readonly string[];
  /** Why there is none, in state error. */
  readonly error: SandboxError | undefined;
  readonly consoleLog: string | undefined;
}

export interface GetVmOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  /** Ends the wait. The machine may be wanted by others, and goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** One machine for each project, for as long as a session of it wants one and a while longer. */
export interface VmManager extends AsyncDisposable {
  /** The project's machine, started unless it runs; the session has it until it is released. */
  getOrCreateVm(projectId: string, sessionId: string, options?: GetVmOptions): Promise<Vm>;
  /** A machine without sessions stops after its idle time. */
  releaseVm(projectId: string, sessionId: string): Promise<void>;
  /** Ends it, also while sessions use it; they are told that it has ended. */
  removeVm(projectId: string): Promise<void>;
  /**
   * Takes over machines that an earlier program left running, with the sessions that `sessionsOf` finds in each, and removes the
   * rest of those that do not run.
   */
  reconcile(sessionsOf: (vm: Vm) => Promise<readonly string[]>): Promise<void>;
  list(): readonly VmInfo[];
  /** Ends all of them and starts no more. */
  shutdown(): Promise<void>;
}
