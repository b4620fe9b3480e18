import type { SandboxId } from "@sandpiper/protocol";
import type { Channel } from "./channel.ts";
import type { ContainerOptions, Containers, PullProgress } from "./containers.ts";

export type ProviderName = "gvisor" | "qemu" | "firecracker" | "docker" | "vm-docker" | "local" | "mock";

export interface ProviderCapabilities {
  /** What stands between the code in a sandbox and the host's kernel. */
  readonly isolation: "user_space_kernel" | "vm" | "container" | "none";
  /** What a checkpoint keeps. */
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
  /** It makes containers: of images by reference, with what `container` of the spec says. */
  readonly supportsContainers: boolean;
}

/** Whether a provider works on this host, and if not, what to do about it. */
export type ProviderStatus =
  | {
      readonly available: true;
      readonly detail: string;
      /** The first instance waits for something that is fetched or built then. */
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
  /** Given to each command that is started, never to the instance: a runtime shows its environment to others. */
  readonly env: Readonly<Record<string, string>>;
  /** Providers of containers only. */
  readonly container: ContainerOptions | undefined;
  /** Firecracker's guest address; unique per manager. */
  readonly vsockCid: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** Why an instance ended. */
export interface InstanceExit {
  readonly reason: "destroyed" | "checkpointed" | "out_of_memory" | "crashed";
  readonly message: string;
}

/** What a provider runs for a sandbox right now. */
export interface Instance {
  readonly id: SandboxId;
  /** Resolves when the instance has ended, whoever ended it; never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** Where published ports are reached, such as `127.0.0.1:49153`, by port inside. */
  readonly addresses?: Readonly<Record<string, string>> | undefined;
  /** Opens the byte stream to the agent; rejects when the agent is not there yet, and may be called again. */
  connect(signal: AbortSignal): Promise<ConnectedChannel>;
  /**
   * Saves it as files in a directory that exists and is empty; only its provider understands them. Its agent must be
   * quiesced. Unless it keeps running it has ended afterwards, and only `destroy` is left to do.
   */
  checkpoint(directory: string, options: CheckpointOptions): Promise<void>;
  /** Given a way to ask its agent, where an instance may hang without ending. Called once. */
  heedAgent?(ask: AskAgent): void;
  /** Stops everything and removes every trace; may be called again. */
  destroy(options?: DestroyOptions): Promise<void>;
}

/** Resolves when the agent has answered, however long that takes; rejects when its channel is lost. */
export type AskAgent = (signal: AbortSignal) => Promise<void>;

export interface DestroyOptions {
  /** Leaves the volumes of the sandbox, which a new instance of the same id then has again. */
  readonly keepsVolumes?: boolean | undefined;
}

export interface CreateInstanceOptions {
  /** Told about what takes long. */
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
  /** An earlier instance of the same id left volumes: they stay, also when this one cannot be made. */
  readonly keepsVolumes?: boolean | undefined;
}

export interface ProvideOptions extends Pick<CreateInstanceOptions, "onProgress"> {
  /** Nobody waits for it any more. */
  readonly signal: AbortSignal;
}

export interface CheckpointOptions {
  readonly keepsRunning: boolean;
  /** Told when everything is captured and only has to be written: one that keeps running need not stand still any longer. */
  readonly onCaptured?: (() => void) | undefined;
}

/** An instance that is prepared for a restore, while its checkpoint may still be in progress. */
export interface PreparedInstance {
  readonly id: SandboxId;
  /** May be called once. The agent stays quiesced until a hello thaws it. Leaves nothing behind on failure. */
  restore(directory: string, signal: AbortSignal): Promise<Instance>;
  /** Removes a prepared instance that is not needed. */
  destroy(): Promise<void>;
}

/** What must be the same where a checkpoint is restored, each in words that can be compared and shown. */
export type CheckpointRequirements = Readonly<Record<string, string>>;

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

/** A driver that makes instances. */
export interface Provider {
  readonly name: ProviderName;
  readonly capabilities: ProviderCapabilities;
  /** The directory in which it keeps its instances, if it has one. */
  readonly chroot?: string | undefined;
  /** Looks, never installs. */
  probe(): Promise<ProviderStatus>;
  /** What a provider of containers can do beside. */
  readonly containers?: Containers | undefined;
  /** Downloads or builds what instances of this root filesystem need, where that may take minutes. */
  provide?(rootfs: string, options: ProvideOptions): Promise<void>;
  /** On failure or abort nothing is left behind. */
  create(spec: InstanceSpec, signal: AbortSignal, options?: CreateInstanceOptions): Promise<Instance>;
  list(): Promise<readonly InstanceRecord[]>;
  /** Takes over a running instance that no living program owns. */
  adopt(id: SandboxId): Promise<Instance>;
  /** Prepares an instance for a restore. Leaves nothing behind on failure or abort. */
  prepare(spec: InstanceSpec, signal: AbortSignal): Promise<PreparedInstance>;
  /** Of this host, for instances of this image: a checkpoint taken here can be restored wherever they are the same. */
  checkpointRequirements(rootfs: string): Promise<CheckpointRequirements>;
  /** Removes what is left of an instance by its id alone; an unknown id is fine. */
  remove(id: SandboxId, options?: DestroyOptions): Promise<void>;
  /** Ends prepared machines that no sandbox uses; instances keep running. */
  [Symbol.asyncDispose]?(): Promise<void>;
}
