import { type Clock, type PreparedSandbox, SandboxError } from "@sandpiper/core";
import { createSandboxId, type PoolKeyBody, type SandboxId } from "@sandpiper/protocol";
import { instanceKeyText } from "../service/instance-key.ts";
import type { Providers } from "../service/providers.ts";

/** Whoever forks once often forks again soon; whoever does not has the memory back after this. */
const KEEP_MS = 60_000;

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

/** Places for forks, one of each shape that was forked lately: making one takes as long as all the rest of a fork. */
export class SparePlaces implements AsyncDisposable {
  readonly #options: SparePlacesOptions;
  readonly #spares = new Map<string, FreePlace & { readonly cancel: () => void }>();
  readonly #removals = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: SparePlacesOptions) {
    this.#options = options;
  }

  take(key: PoolKeyBody): FreePlace {
    const text = instanceKeyText(key);
    const spare = this.#spares.get(text);
    if (spare === undefined) return this.#prepare(key);
    spare.cancel();
    this.#spares.delete(text);
    return spare;
  }

  /** Makes sure that there is one the next time. */
  refill(key: PoolKeyBody): void {
    const text = instanceKeyText(key);
    if (this.#isClosed || this.#spares.has(text)) return;
    const made = this.#prepare(key);
    const cancel = this.#options.clock.schedule(KEEP_MS, () => this.#drop(text));
    this.#spares.set(text, { ...made, cancel });
    made.place.catch((thrown) => {
      this.#options.onError(SandboxError.from(thrown), made.id);
      if (this.#spares.get(text)?.id !== made.id) return;
      cancel();
      this.#spares.delete(text);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const text of [...this.#spares.keys()]) this.#drop(text);
    await Promise.all(this.#removals);
  }

  #prepare(key: PoolKeyBody): FreePlace {
    const id = createSandboxId();
    const place = this.#options.providers.prepare(key, { id });
    place.catch(() => {});
    return { id, place };
  }

  #drop(text: string): void {
    const spare = this.#spares.get(text);
    if (spare === undefined) return;
    spare.cancel();
    this.#spares.delete(text);
    const removal = spare.place
      .then((place) => place.destroy())
      .catch((thrown) => this.#options.onError(SandboxError.from(thrown), spare.id))
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}
