import type { CreateInstanceOptions, InstanceExit, ProviderStatus } from "../provider.ts";

/** What a project's machine has; all of its containers share it. */
export interface VmResources {
  readonly memoryMib: number;
  readonly vcpuCount: number;
  readonly diskMib: number;
}

/** A machine with a container engine inside that answers. */
export interface Vm {
  readonly id: string;
  readonly projectId: string;
  /** Where its engine is reached from here: `unix:///path`. */
  readonly engineUrl: string;
  /** Of this host, for what is known of its containers; it is removed with the machine. */
  readonly directory: string;
  /** A file with what its kernel said; a driver that has none says undefined. */
  readonly consoleLog: string | undefined;
  /** Resolves when it has ended, whoever ended it; never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** Ends it and removes every trace; may be called again. */
  destroy(): Promise<void>;
}

export interface StartVmOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  readonly resources: VmResources;
  readonly signal: AbortSignal;
}

/** A machine whose program has ended. */
export interface OrphanVm {
  readonly id: string;
  readonly projectId: string;
  readonly isRunning: boolean;
}

/** Runs machines with one kind of hypervisor. */
export interface VmDriver {
  readonly name: "qemu" | "vz" | "wsl2";
  /** Looks, never installs. */
  probe(): Promise<ProviderStatus>;
  /** Resolves when its engine answers. On failure or abort nothing is left behind. */
  start(projectId: string, options: StartVmOptions): Promise<Vm>;
  /** Machines that no living program owns. */
  listOrphans(): Promise<readonly OrphanVm[]>;
  /** Takes over a running machine that no living program owns. */
  adopt(id: string): Promise<Vm>;
  /** Removes what is left of a machine by its id alone; an unknown id is fine. */
  remove(id: string): Promise<void>;
}
