import type { ContainerBody, SandboxId } from "@sandpiper/protocol";

/** How a container is made. */
export interface ContainerOptions extends ContainerBody {
  /** A reference such as python:3.13-slim; the provider's own choice unless given. */
  readonly image?: string | undefined;
}

export type ContainerState = "created" | "running" | "stopped" | "failed";

export interface ContainerInfo {
  readonly id: SandboxId;
  readonly state: ContainerState;
  /** Where published ports are reached, such as `127.0.0.1:49153`, by port inside. */
  readonly addresses: Readonly<Record<string, string>>;
  /** The image as it was asked for, and what the engine made of it. */
  readonly image: string;
  readonly imageId: string;
  readonly createdAt: Date;
  readonly exit: ContainerExit | undefined;
}

export interface ContainerExit {
  readonly exitCode: number;
  readonly isOutOfMemory: boolean;
}

/** What became of a container. A watcher is first told of each that is there, as if it had just come to be so. */
export interface ContainerEvent {
  readonly id: SandboxId;
  readonly kind: ContainerState | "removed";
  /** True for what was so when the watch began, or began again. */
  readonly isReplay: boolean;
  readonly at: Date;
  readonly exit: ContainerExit | undefined;
}

/** How far an image is on its way to this machine; a layer is told of again and again. */
export interface PullProgress {
  readonly image: string;
  readonly layer: string;
  readonly status: "waiting" | "downloading" | "unpacking" | "building" | "complete";
  readonly doneBytes: number;
  /** Unknown before the registry has said so. */
  readonly totalBytes: number | undefined;
}

export interface PullOptions {
  readonly policy: NonNullable<ContainerBody["imagePullPolicy"]>;
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
}

/** A volume that the sandboxes of a project share. */
export interface CacheVolume {
  readonly project: string;
  readonly name: string;
  readonly sizeBytes: number;
  /** Sandboxes that have it mounted: it cannot be cleared before they are gone. */
  readonly usedBy: readonly SandboxId[];
}

/** What a provider of containers can do beside what every provider can. */
export interface Containers {
  get(id: SandboxId): Promise<ContainerInfo>;
  /** Starts one that was stopped: its files are as they were, its processes are gone. */
  start(id: SandboxId): Promise<void>;
  /** Kills it when it has not ended by itself in time. */
  stop(id: SandboxId, options: { readonly timeoutMs: number }): Promise<void>;
  /** Ends with its signal; an engine that goes away and comes back is told of as a new replay. */
  watch(signal: AbortSignal): AsyncIterable<ContainerEvent>;
  /** Makes sure that the engine has an image for this machine, as the policy says. */
  pull(image: string, options: PullOptions): Promise<void>;
  /** Whether its image's reference means another image by now. */
  isOutdated(id: SandboxId): Promise<boolean>;
  listCaches(): Promise<readonly CacheVolume[]>;
  clearCache(cache: Pick<CacheVolume, "project" | "name">): Promise<void>;
}
