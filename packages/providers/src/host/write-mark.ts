import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILE = "unfinished-write";
/** Long enough that a stream of large writes creates the file once. */
const CLEAR_AFTER_MS = 1000;

/**
 * A file that exists while a channel may hold an incomplete frame. A program that adopts the instance then
 * resynchronizes the channel, which costs megabytes and is otherwise unnecessary.
 */
export class WriteMark {
  readonly #path: string;
  #isSet = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(directory: string) {
    this.#path = join(directory, FILE);
  }

  static isSet(directory: string): boolean {
    return existsSync(join(directory, FILE));
  }

  set(): void {
    if (!this.#isSet) writeFileSync(this.#path, "");
    this.#isSet = true;
  }

  /** Call once `isClean` reports that everything has been written. */
  clearLater(isClean: () => boolean): void {
    if (!this.#isSet || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!isClean()) return this.clearLater(isClean);
      this.#isSet = false;
      rmSync(this.#path, { force: true });
    }, CLEAR_AFTER_MS);
    this.#timer.unref();
  }

  /** Leaves the file as it is. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
