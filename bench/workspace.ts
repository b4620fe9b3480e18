import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeLeftovers } from "./leftovers.ts";

/** The directory under which everything of a run lies, so that whatever is left of it can be found by its path. */
export class Workspace implements AsyncDisposable {
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Versions of the programs that were measured, as the subjects find them out. */
  readonly versions: Record<string, string> = {};
  readonly #stack = new AsyncDisposableStack();

  constructor(dir: string, signal: AbortSignal) {
    this.dir = dir;
    this.signal = signal;
  }

  static async create(signal: AbortSignal): Promise<Workspace> {
    // Short: Unix sockets lie below it, and their paths hold at most 108 bytes.
    return new Workspace(await mkdtemp(join(tmpdir(), "spbench-")), signal);
  }

  /** Makes a directory of the run. */
  async makeDir(...names: readonly string[]): Promise<string> {
    const path = join(this.dir, ...names);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** Has the resource disposed of at the end of the run, last come first. */
  own<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#stack.disposeAsync();
    } finally {
      await removeLeftovers(this.dir);
      await rm(this.dir, { recursive: true, force: true });
    }
  }
}
