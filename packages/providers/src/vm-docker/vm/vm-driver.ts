import type { CreateInstanceOptions, InstanceExit, InstanceSpec, ProviderStatus, Tunnel } from "@sandpiper/core";

/** The size of a project's machine; all its containers share it. */
export type VmResources = Pick<InstanceSpec, "memoryMib" | "vcpuCount" | "diskMib">;

/** A running machine whose container engine answers. */
export interface Vm {
  readonly id: string;
  readonly projectId: string;
  /** The engine's address on this host: `unix:///path`. */
  readonly engineUrl: string;
  /** A directory of this host for the state of its containers; removed with the machine. */
  readonly directory: string;
  /** The file with the kernel's console output; undefined where the driver has none. */
  readonly consoleLog: string | undefined;
  /** Resolves when the machine has ended for any reason; never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** Its volumes are on a disk that outlives it. */
  readonly keepsVolumes?: boolean;
  /** Connects to a port on the machine's loopback; undefined where the driver cannot. */
  dial?(port: number): Promise<Tunnel>;
  /** Ends the machine and removes every trace; idempotent. */
  destroy(): Promise<void>;
}

export interface StartVmOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  readonly resources: VmResources;
  readonly signal: AbortSignal;
}

/** A machine whose host program has ended. */
export interface OrphanVm {
  readonly id: string;
  readonly projectId: string;
  readonly isRunning: boolean;
}

/** Runs machines on one kind of hypervisor. */
export interface VmDriver {
  readonly name: "qemu" | "vz" | "wsl2";
  /** Checks the host; never installs anything. */
  probe(): Promise<ProviderStatus>;
  /** Resolves when the engine answers. On failure or abort nothing is left behind. */
  start(projectId: string, options: StartVmOptions): Promise<Vm>;
  /** Machines without a living owner. */
  listOrphans(): Promise<readonly OrphanVm[]>;
  /** Adopts a running machine without a living owner. */
  adopt(id: string): Promise<Vm>;
  /** Removes what is left of a machine by its id; ignores an unknown id. */
  remove(id: string): Promise<void>;
}
