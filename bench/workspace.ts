import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeLeftovers } from "./leftovers.ts";

/** Followed by the process id of its owner. Short: Unix sockets lie below it, and their paths hold at most 108 bytes. */
const PREFIX = "spbench-";

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
    await removeAbandoned();
    return new Workspace(await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`)), signal);
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

/** Clears away what runs that were killed have left. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, owner] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    const dir = join(tmpdir(), name);
    await removeLeftovers(dir);
    await rm(dir, { recursive: true, force: true });
  }
}
