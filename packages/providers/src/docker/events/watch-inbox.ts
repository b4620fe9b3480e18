import { unlessAborted } from "../../host/unless-aborted.ts";
import type { EngineEvent } from "./engine-event.ts";
import type { EngineEventsListener, PresentContainers } from "./engine-events.ts";

/** Above this number, a slow reader gets the current containers instead of every event. */
const MAX_WAITING = 1000;

export type WatchItem = EngineEvent | { readonly present: PresentContainers } | { readonly isOverflow: true };

/** The engine's events that are not read yet. */
export class WatchInbox implements EngineEventsListener {
  readonly #signal: AbortSignal;
  #items: WatchItem[] = [];
  #arrival = Promise.withResolvers<void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  began(present: PresentContainers): void {
    this.#items = [{ present }];
    this.#arrival.resolve();
  }

  happened(event: EngineEvent): void {
    if (this.#items.length >= MAX_WAITING) this.#items = [{ isOverflow: true }];
    this.#items.push(event);
    this.#arrival.resolve();
  }

  /** Resolves to undefined after an abort. */
  async next(): Promise<WatchItem | undefined> {
    while (this.#items.length === 0 && !this.#signal.aborted) {
      this.#arrival = Promise.withResolvers();
      // The loop ends after an abort.
      await unlessAborted(() => this.#arrival.promise, this.#signal).catch(() => {});
    }
    return this.#signal.aborted ? undefined : this.#items.shift();
  }
}
