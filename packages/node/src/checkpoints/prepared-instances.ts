import { type Clock, type PreparedSandbox, SandboxError } from "@sandpiper/core";
import { createSandboxId, type PoolKeyBody, type SandboxId } from "@sandpiper/protocol";
import { instanceKeyText } from "../sandboxes/instance-key.ts";
import type { Providers } from "../sandboxes/providers.ts";

/** Whoever forks once often forks again soon; whoever does not has the memory back after this. */
const KEEP_MS = 60_000;
/** Each costs some ten megabytes. */
const MAX_SPARES = 4;

export interface SparePlacesOptions {
  readonly providers: Pick<Providers, "prepare">;
  readonly clock: Clock;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** A place under an id that no sandbox has yet. */
export interface FreePlace {
  readonly id: SandboxId;
  readonly place: Promise<PreparedSandbox>;
}

interface Shelf {
  readonly key: PoolKeyBody;
  readonly places: FreePlace[];
  /** As many as the largest fork of late made. */
  wanted: number;
  cancel: () => void;
}

/** Places for forks of shapes that were forked lately: making one takes as long as all the rest of a fork. */
export class SparePlaces implements AsyncDisposable {
  readonly #options: SparePlacesOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #removals = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: SparePlacesOptions) {
    this.#options = options;
  }

  take(key: PoolKeyBody): FreePlace {
    return this.#shelves.get(instanceKeyText(key))?.places.shift() ?? this.#prepare(key);
  }

  /** Makes sure that there are as many the next time, within reason. */
  refill(key: PoolKeyBody, count: number): void {
    if (this.#isClosed) return;
    const text = instanceKeyText(key);
    const shelf = this.#shelves.get(text) ?? { key, places: [], wanted: 0, cancel: () => {} };
    this.#shelves.set(text, shelf);
    shelf.cancel();
    shelf.cancel = this.#options.clock.schedule(KEEP_MS, () => this.#drop(text));
    shelf.wanted = Math.max(shelf.wanted, Math.min(count, MAX_SPARES));
    while (shelf.places.length < shelf.wanted) this.#add(shelf);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const text of [...this.#shelves.keys()]) this.#drop(text);
    await Promise.all(this.#removals);
  }

  #add(shelf: Shelf): void {
    const made = this.#prepare(shelf.key);
    shelf.places.push(made);
    made.place.catch((thrown) => {
      const at = shelf.places.indexOf(made);
      if (at !== -1) shelf.places.splice(at, 1);
      this.#options.onError(SandboxError.from(thrown), made.id);
    });
  }

  #prepare(key: PoolKeyBody): FreePlace {
    const id = createSandboxId();
    const place = this.#options.providers.prepare(key, { id });
    place.catch(() => {});
    return { id, place };
  }

  #drop(text: string): void {
    const shelf = this.#shelves.get(text);
    shelf?.cancel();
    this.#shelves.delete(text);
    for (const { id, place } of shelf?.places ?? []) {
      const removal = place
        .then((made) => made.destroy())
        .catch((thrown) => this.#options.onError(SandboxError.from(thrown), id))
        .finally(() => this.#removals.delete(removal));
      this.#removals.add(removal);
    }
  }
}
