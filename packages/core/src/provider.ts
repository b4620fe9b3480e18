import type { SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Channel } from "./channel.ts";
import type { ContainerOptions, Containers, PullProgress } from "./containers.ts";
import type { Machines } from "./machines.ts";

export type ProviderName = SandboxResource["provider"];

export interface ProviderCapabilities {
  /** The isolation between a sandbox and the host's kernel. */
  readonly isolation: "user_space_kernel" | "vm" | "container" | "none";
  /** What a checkpoint saves. */
  readonly checkpoint: "memory" | "filesystem" | "none";
  /** Which limits of the spec are enforced. */
  readonly limits: {
    readonly memory: boolean;
    readonly cpu: boolean;
    readonly processes: boolean;
    readonly disk: boolean;
  };
  /** A new host program can take over instances that an earlier one left running. */
  readonly supportsAdopt: boolean;
  /** Several users (`root`, `user`, …) exist inside. */
  readonly supportsUsers: boolean;
  /** It creates containers from image references, with the options in `container` of the spec. */
  readonly supportsContainers: boolean;
  /**
   * `redirected`: connections and DNS queries of a sandbox reach its agent, and the host program decides on each. `host`:
   * commands have the host's network.
   */
  readonly network: "redirected" | "host";
}

/** Whether a provider works on this host and, if not, the next step. */
export type ProviderStatus =
  | {
      readonly available: true;
      readonly detail: string;
      /** The first instance waits for a download or build. */
      readonly isFirstUse?: boolean | undefined;
    }
  | { readonly available: false; readonly reason: string; readonly hint: string };

/** Everything that shapes an instance; complete, checked and frozen. */
export interface InstanceSpec {
  readonly id: SandboxId;
  /** "host" (the machine's own programs, read-only) or the absolute path of a directory or disk image. */
  readonly rootfs: string;
  /** VM providers only. */
  readonly kernel: string | undefined;
  readonly memoryMib: number;
  readonly vcpuCount: number;
  readonly diskMib: number;
  readonly maxProcesses: number;
  /** Passed to each command and never to the instance, because a runtime may show its environment to others. */
  readonly env: Readonly<Record<string, string>>;
  /** Providers of containers only. */
  readonly container: ContainerOptions | undefined;
  /** Firecracker's guest address; unique per manager. */
  readonly vsockCid: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** Why an instance ended. */
export interface InstanceExit {
  readonly reason: "destroyed" | "checkpointed" | "stopped" | "out_of_memory" | "crashed";
  readonly message: string;
}

export interface ServiceCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** A name, "uid" or "uid:gid". */
  readonly user: string;
}

/** A running sandbox, as its provider sees it. */
export interface Instance {
  readonly id: SandboxId;
  /** Resolves when the instance has ended for any reason; never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** Addresses of published ports, such as `127.0.0.1:49153`, by port inside. */
  readonly addresses?: Readonly<Record<string, string>> | undefined;
  /** A command that runs in it as process `service`, next to other commands. */
  readonly service?: ServiceCommand | undefined;
  /** The ids of processes that its checkpoint of files was taken without, although they may have changed these files. */
  readonly earlierProcesses?: readonly string[] | undefined;
  /** Opens the byte stream to the agent; rejects while the agent is not ready, and may be called again. */
  connect(signal: AbortSignal): Promise<ConnectedChannel>;
  /**
   * Saves it as files in an existing, empty directory, in the provider's own format. Its agent must be quiesced. Without
   * `keepsRunning` it has then ended, and only `destroy` remains to be called.
   */
  checkpoint(directory: string, options: CheckpointOptions): Promise<void>;
  /** Sets a way to ping its agent, for providers whose instances may hang. Called once. */
  watchAgent?(ping: PingAgent): void;
  /** Stops the instance and removes all of its data; may be called again. */
  destroy(options?: DestroyOptions): Promise<void>;
}

/** Pings the agent without a time limit; rejects when the channel is lost. */
export type PingAgent = (signal: AbortSignal) => Promise<void>;

export interface DestroyOptions {
  /** Keeps the volumes of the sandbox for a new instance of the same id. */
  readonly keepsVolumes?: boolean | undefined;
}

export interface CreateInstanceOptions {
  /** Called with the progress of slow steps. */
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
  /** Keep the volumes of an earlier instance of the same id, even if this one cannot be created. */
  readonly keepsVolumes?: boolean | undefined;
}

export interface ProvideOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  /** Cancels the work. */
  readonly signal: AbortSignal;
}

export interface CheckpointOptions {
  readonly keepsRunning: boolean;
  /** Called when the state is captured and only has to be written; the instance may then continue. */
  readonly onCaptured?: (() => void) | undefined;
  /** For a checkpoint of files: the `earlierProcesses` of instances that are restored from it. */
  readonly processes?: readonly string[] | undefined;
}

/** A prepared instance for a restore, created while its checkpoint is still being loaded. */
export interface PreparedInstance {
  readonly id: SandboxId;
  /** Its agent is still quiesced; a hello thaws it. On failure it removes the instance. May be called once. */
  restore(directory: string, signal: AbortSignal): Promise<Instance>;
  /** Removes it unused. */
  destroy(): Promise<void>;
}

/** Requirements of a node that restores a checkpoint, as strings to compare and show. */
export type CheckpointRequirements = Readonly<Record<string, string>>;

export interface RequirementsOptions {
  /** The requirements of a checkpoint. A host with several versions of a runtime answers for the one that these name. */
  readonly saved?: CheckpointRequirements | undefined;
  /** An instance of this host, which an earlier version of the runtime may run. */
  readonly instance?: SandboxId | undefined;
}

export interface PrepareInstanceOptions {
  /** The requirements of the checkpoint to restore. */
  readonly saved?: CheckpointRequirements | undefined;
}

export interface ConnectedChannel {
  readonly channel: Channel;
  /** True when an earlier caller may have left half a frame on the same byte stream. */
  readonly needsResync: boolean;
}

/** An instance found on this host, for reconciliation. */
export interface InstanceRecord {
  readonly id: SandboxId;
  readonly spec: InstanceSpec;
  readonly createdAt: Date;
  readonly isRunning: boolean;
  /** False while the program that created or adopted it still runs. */
  readonly isOrphan: boolean;
}

/** One version of a program that a provider keeps beside others, because instances or checkpoints depend on it. */
export interface KeptRelease {
  readonly program: string;
  readonly version: string;
  /** New instances use it. */
  readonly isCurrent: boolean;
  /** The instances of this host that use it. */
  readonly instances: readonly SandboxId[];
}

/** The versions that a provider keeps. */
export interface Releases {
  list(): Promise<readonly KeptRelease[]>;
  /** Keeps the program at this path. */
  add(path: string): Promise<KeptRelease>;
  /** The caller has checked that nothing needs it. */
  remove(release: KeptRelease): Promise<void>;
  /** Whether a checkpoint with these requirements needs it. */
  isRequired(release: KeptRelease, requirements: CheckpointRequirements): boolean;
}

/** A driver that creates instances. */
export interface Provider {
  readonly name: ProviderName;
  readonly capabilities: ProviderCapabilities;
  /** The directory in which it keeps its instances, if it has one. */
  readonly chroot?: string | undefined;
  /** Checks the host without changing it. */
  probe(): Promise<ProviderStatus>;
  /** Further operations of providers of containers. */
  readonly containers?: Containers | undefined;
  /** Further operations of providers that run one machine for each project; each of their sandboxes has a project. */
  readonly machines?: Machines | undefined;
  /** Set if several versions of its programs can be installed side by side. */
  readonly releases?: Releases | undefined;
  /** Downloads or builds what instances of this root filesystem need, which may take minutes. */
  provide?(rootfs: string, options: ProvideOptions): Promise<void>;
  /** On failure or abort nothing is left behind. */
  create(spec: InstanceSpec, signal: AbortSignal, options?: CreateInstanceOptions): Promise<Instance>;
  list(): Promise<readonly InstanceRecord[]>;
  /** Takes over a running instance that no living program owns. */
  adopt(id: SandboxId): Promise<Instance>;
  /** Prepares an instance for `restore`. On failure or abort it removes everything it created. */
  prepare(spec: InstanceSpec, signal: AbortSignal, options?: PrepareInstanceOptions): Promise<PreparedInstance>;
  /** The requirements of checkpoints that this host takes of this image; a node with equal ones can restore them. */
  checkpointRequirements(rootfs: string, options?: RequirementsOptions): Promise<CheckpointRequirements>;
  /** Removes the leftovers of an instance by its id; ignores an unknown id. */
  remove(id: SandboxId, options?: DestroyOptions): Promise<void>;
  /** Ends prepared instances; others keep running. */
  [Symbol.asyncDispose]?(): Promise<void>;
}
