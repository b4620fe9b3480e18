import { chmod, link, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { currentOwner } from "../../host/process-owner.ts";
import { removeAbandoned, transientName } from "../../host/transient-name.ts";
import { copySparse } from "./copy-sparse.ts";

const OTHERS_READ = 0o004;
const READ_ONLY = 0o444;
/** Those that no machine uses any more are removed beyond so many. */
const MAX_UNUSED = 4;

/**
 * Files that machines share and none can write to. A jail holds them as links, which must be of the same filesystem, and its
 * user must be able to read them: where a file is not so, one copy of it is made for all machines.
 */
export class SharedFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** `name` is one that other contents do not have. */
  async link(path: string, name: string, target: string): Promise<void> {
    if (((await stat(path)).mode & OTHERS_READ) !== 0 && (await linked(path, target))) return;
    const shared = join(this.#directory, name);
    if (!(await linked(shared, target))) {
      await this.#copy(path, shared);
      await link(shared, target);
    }
  }

  async #copy(path: string, shared: string): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await removeAbandoned(this.#directory);
    await this.#prune();
    const draft = transientName(`${shared}.draft`, await currentOwner());
    try {
      await copySparse(path, draft);
      await chmod(draft, READ_ONLY);
      await rename(draft, shared);
    } finally {
      await rm(draft, { force: true });
    }
  }

  async #prune(): Promise<void> {
    const names = await readdir(this.#directory);
    const found = await Promise.all(
      names.map(async (name) => {
        const info = await stat(join(this.#directory, name)).catch(() => undefined);
        return info?.nlink === 1 ? [{ name, usedAtMs: info.ctimeMs }] : [];
      }),
    );
    const unused = found.flat().toSorted((one, other) => other.usedAtMs - one.usedAtMs);
    await Promise.all(unused.slice(MAX_UNUSED).map(({ name }) => rm(join(this.#directory, name), { force: true })));
  }
}

/** False where the filesystem is another one, or there is nothing to link. */
async function linked(path: string, target: string): Promise<boolean> {
  return await link(path, target).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EXDEV" || error.code === "ENOENT" || error.code === "EPERM" || error.code === "EMLINK")
        return false;
      throw error;
    },
  );
}
