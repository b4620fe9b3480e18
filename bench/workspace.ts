import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeLeftovers } from "./leftovers.ts";

/** Followed by the owner's process id. Short, because paths of Unix sockets below it hold at most 108 bytes. */
const PREFIX = "spbench-";

/** The directory of a run; its path identifies leftovers. */
export class Workspace implements AsyncDisposable {
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Versions of the measured programs, added by the subjects. */
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

  /** Creates a directory of the run. */
  async makeDir(...names: readonly string[]): Promise<string> {
    const path = join(this.dir, ...names);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** Disposes the resource at the end of the run, in reverse order. */
  own<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  /** Does the work at the end of the run, in reverse order. */
  defer(work: () => unknown): void {
    this.#stack.defer(async () => void (await work()));
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

/** Does the work once per run. */
export function oncePerRun<T>(work: (workspace: Workspace) => Promise<T>): (workspace: Workspace) => Promise<T> {
  const known = new WeakMap<Workspace, Promise<T>>();
  return (workspace) => known.getOrInsertComputed(workspace, work);
}

/** Removes the leftovers of killed runs. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, owner] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    const dir = join(tmpdir(), name);
    await removeLeftovers(dir);
    await rm(dir, { recursive: true, force: true });
  }
}
