import { availableParallelism } from "node:os";
import { type Clock, type InstanceSpec, type ProviderCapabilities, systemClock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceStore } from "./instance-store.ts";
import type { KillList } from "./kill-list.ts";
import { Semaphore } from "./semaphore.ts";
import { stateDirectory } from "./state-directory.ts";
import { undoAfter } from "./undo-after.ts";

/** Boots keep the processors busy, so more of them at once only slow each other down. */
const BOOTS_PER_PROCESSOR = 2;

export interface KernelProviderOptions {
  readonly stateDirectory?: string | undefined;
  readonly clock?: Clock | undefined;
  /** Receives what the lease guard must kill, for nodes of a cluster. */
  readonly killList?: KillList | undefined;
}

/** A provider of instances that each have their own kernel, as processes of this host. */
export abstract class KernelProvider {
  readonly capabilities: ProviderCapabilities;
  protected readonly stateDirectory: string;
  protected readonly clock: Clock;
  readonly #boots = new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism());

  constructor(isolation: ProviderCapabilities["isolation"], options: KernelProviderOptions) {
    this.capabilities = Object.freeze({
      isolation,
      checkpoint: "memory",
      limits: Object.freeze({ memory: true, cpu: true, processes: true, disk: true }),
      supportsAdopt: true,
      supportsUsers: true,
      supportsContainers: false,
      network: "redirected",
    });
    this.stateDirectory = options.stateDirectory ?? stateDirectory();
    this.clock = options.clock ?? systemClock;
  }

  abstract remove(id: SandboxId): Promise<void>;

  /** Waits until this host can boot another instance. */
  protected boot<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#boots.run(start, signal);
  }

  /** Must run before anything is started for the instance. Returns its directory. */
  protected record(
    store: InstanceStore,
    spec: InstanceSpec,
    files: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    return store.add({ spec, createdAt: this.clock.now().toISOString() }, files);
  }

  /** Removes an instance that fails to start. */
  protected async started<T>(id: SandboxId, start: () => Promise<T>): Promise<T> {
    return await start().catch((error: unknown) => undoAfter(error, id, () => this.remove(id)));
  }
}
