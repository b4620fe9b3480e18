import type { MachineResource, SandboxError, SandboxId } from "@sandpiper/protocol";

/** The virtual machine of a project. */
export interface MachineInfo
  extends Readonly<Pick<MachineResource, "id" | "project" | "state" | "memoryMib" | "vcpuCount" | "diskMib">> {
  /** The sandboxes that hold it. */
  readonly sandboxes: readonly SandboxId[];
  readonly startedAt: Date | undefined;
  /** Why it failed, in state `error`. */
  readonly error: SandboxError | undefined;
}

/** Operations of providers that run one machine for each project. */
export interface Machines {
  list(): Promise<readonly MachineInfo[]>;
  /** The end of a machine's console; empty if it does not run. */
  readConsole(id: string): Promise<string>;
  /** Stops a machine in any state; its sandboxes see that it ended. */
  stop(id: string): Promise<void>;
}
