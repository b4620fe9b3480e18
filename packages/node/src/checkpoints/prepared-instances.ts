import { type Clock, type PreparedSandbox, SandboxError } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { type InstanceKey, instanceKeyText } from "../sandboxes/instance-key.ts";
import type { Providers } from "../sandboxes/providers.ts";

/** A caller that forks once often forks again soon. After this time the instances are destroyed, to free their memory. */
const KEEP_MS = 60_000;
/** Each uses about ten megabytes. */
const MAX_PREPARED = 4;

export interface PreparedInstancesOptions {
  readonly providers: Pick<Providers, "prepare">;
  readonly clock: Clock;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** A prepared instance with an id that no sandbox has yet. */
export interface FreeInstance {
  readonly id: SandboxId;
  readonly instance: Promise<PreparedSandbox>;
}

interface Shelf {
  readonly key: InstanceKey;
  readonly free: FreeInstance[];
  /** The size of the largest recent fork. */
  wanted: number;
  cancel: () => void;
}

/** Prepares instances for shapes that were forked recently, because preparing one takes as long as the rest of a fork. */
export class PreparedInstances implements AsyncDisposable {
  readonly #options: PreparedInstancesOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #removals = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: PreparedInstancesOptions) {
    this.#options = options;
  }

  take(key: InstanceKey): FreeInstance {
    return this.#shelves.get(instanceKeyText(key))?.free.shift() ?? this.#prepare(key);
  }

  /** Prepares the same number for the next fork, up to the maximum. */
  refill(key: InstanceKey, count: number): void {
    if (this.#isClosed) return;
    const text = instanceKeyText(key);
    const shelf = this.#shelves.get(text) ?? { key, free: [], wanted: 0, cancel: () => {} };
    this.#shelves.set(text, shelf);
    shelf.cancel();
    shelf.cancel = this.#options.clock.schedule(KEEP_MS, () => this.#drop(text));
    shelf.wanted = Math.max(shelf.wanted, Math.min(count, MAX_PREPARED));
    while (shelf.free.length < shelf.wanted) this.#add(shelf);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const text of [...this.#shelves.keys()]) this.#drop(text);
    await Promise.all(this.#removals);
  }

  #add(shelf: Shelf): void {
    const added = this.#prepare(shelf.key);
    shelf.free.push(added);
    added.instance.catch((thrown) => {
      const index = shelf.free.indexOf(added);
      if (index !== -1) shelf.free.splice(index, 1);
      this.#options.onError(SandboxError.from(thrown), added.id);
    });
  }

  #prepare(key: InstanceKey): FreeInstance {
    const id = createSandboxId();
    const instance = this.#options.providers.prepare(key, { id });
    instance.catch(() => {});
    return { id, instance };
  }

  #drop(text: string): void {
    const shelf = this.#shelves.get(text);
    shelf?.cancel();
    this.#shelves.delete(text);
    for (const { id, instance } of shelf?.free ?? []) {
      const removal = instance
        .then((prepared) => prepared.destroy())
        .catch((thrown) => this.#options.onError(SandboxError.from(thrown), id))
        .finally(() => this.#removals.delete(removal));
      this.#removals.add(removal);
    }
  }
}
