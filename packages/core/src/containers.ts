import type { CacheResource, ContainerBody, PullProgressBody, SandboxId } from "@sandpiper/protocol";

/** The configuration of a container. */
export interface ContainerOptions extends ContainerBody {
  /** A reference such as python:3.13-slim; the provider's default if omitted. */
  readonly image?: string | undefined;
  /** The workspace is a volume that gets a copy of its content: the engine has no files of this host. Set by providers. */
  readonly isWorkspaceCopied?: boolean | undefined;
}

export type ContainerState = "created" | "running" | "stopped" | "failed";

export interface ContainerInfo {
  readonly id: SandboxId;
  readonly state: ContainerState;
  /** The addresses of published ports, such as `127.0.0.1:49153`, by port in the container. */
  readonly addresses: Readonly<Record<string, string>>;
  /** The requested image reference, and the id that it resolved to. */
  readonly image: string;
  readonly imageId: string;
  readonly createdAt: Date;
  readonly exit: ContainerExit | undefined;
}

export interface ContainerExit {
  readonly exitCode: number;
  readonly isOutOfMemory: boolean;
}

/** A change of a container. A watch first replays the state of every existing container. */
export interface ContainerEvent {
  readonly id: SandboxId;
  readonly kind: ContainerState | "removed";
  /** True for the state at the start of the watch, or after an interruption. */
  readonly isReplay: boolean;
  readonly at: Date;
  readonly exit: ContainerExit | undefined;
}

/** The progress of one layer of a pull; reported repeatedly. */
export interface PullProgress extends Readonly<Omit<PullProgressBody, "totalBytes">> {
  /** Undefined until the registry has reported it. */
  readonly totalBytes: number | undefined;
}

export interface PullOptions {
  readonly policy: NonNullable<ContainerBody["imagePullPolicy"]>;
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
}

/** A volume that the sandboxes of a project share. */
export interface CacheVolume extends Readonly<Omit<CacheResource, "usedBy">> {
  /** Sandboxes that mount it; it cannot be cleared while there are any. */
  readonly usedBy: readonly SandboxId[];
}

/** A volume that a destroyed sandbox left. */
export interface KeptVolume {
  readonly name: string;
  readonly sandbox: SandboxId;
  /** Where it was mounted. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Sandboxes that mount it; it cannot be removed while there are any. */
  readonly usedBy: readonly SandboxId[];
}

/** Volumes whose sandbox has no instance any more. */
export interface KeptVolumes {
  list(): Promise<readonly KeptVolume[]>;
  remove(name: string): Promise<void>;
}

/** Operations that only providers of containers have. */
export interface Containers {
  get(id: SandboxId): Promise<ContainerInfo>;
  /** Starts a stopped container: its files are unchanged, its processes are gone. */
  start(id: SandboxId): Promise<void>;
  /** Kills the container if it does not end within the timeout. */
  stop(id: SandboxId, options: { readonly timeoutMs: number }): Promise<void>;
  /** Ends with its signal. Replays again after the engine was down. */
  watch(signal: AbortSignal): AsyncIterable<ContainerEvent>;
  /** Ensures that the engine has an image for this machine, according to the policy. */
  pull(image: string, options: PullOptions): Promise<void>;
  /** Whether the container's image reference now resolves to another image. */
  isOutdated(id: SandboxId): Promise<boolean>;
  /** Undefined if volumes cannot outlive their sandbox. */
  readonly kept?: KeptVolumes | undefined;
  listCaches(): Promise<readonly CacheVolume[]>;
  clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void>;
}
