import type { PullProgress } from "@sandpiper/core";
import type { PullProgressBody } from "@sandpiper/protocol";

/** Queues the progress of a pull for a slow reader: only the newest state of each layer waits. */
export class PullReport implements AsyncIterable<PullProgressBody> {
  readonly #waiting = new Map<string, PullProgressBody>();
  #isOver = false;
  #wake = () => {};

  readonly add = ({ totalBytes, ...progress }: PullProgress): void => {
    this.#waiting.set(progress.layer, { ...progress, totalBytes: totalBytes ?? null });
    this.#wake();
  };

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PullProgressBody, void, undefined> {
    for (;;) {
      for (const [layer, progress] of this.#waiting) {
        this.#waiting.delete(layer);
        yield progress;
      }
      if (this.#isOver && this.#waiting.size === 0) return;
      if (this.#waiting.size > 0) continue;
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      await woken.promise;
    }
  }
}
