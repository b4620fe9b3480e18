import { chmod, link, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { publishFile } from "../../host/publish-file.ts";
import { copySparse } from "./copy-sparse.ts";

const OTHERS_READ = 0o004;
const READ_ONLY = 0o444;
/** How many files to keep that no machine uses. */
const MAX_UNUSED = 4;

/**
 * Read-only files that machines share. A jail holds them as hard links, so they must be on its filesystem and readable
 * for its user. Other files are copied once for all machines.
 */
export class SharedFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** `name` must be unique to the content. */
  async link(path: string, name: string, target: string): Promise<void> {
    if (((await stat(path)).mode & OTHERS_READ) !== 0 && (await linked(path, target))) return;
    const shared = join(this.#directory, name);
    if (!(await linked(shared, target))) {
      await this.#copy(path, shared);
      await link(shared, target);
    }
  }

  async #copy(path: string, shared: string): Promise<void> {
    await publishFile(shared, async (draft) => {
      await this.#prune();
      await copySparse(path, draft);
      await chmod(draft, READ_ONLY);
    });
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

/** False when the file is missing or cannot be linked across filesystems. */
async function linked(path: string, target: string): Promise<boolean> {
  return await link(path, target).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (["EXDEV", "ENOENT", "EPERM", "EMLINK"].includes(error.code ?? "")) return false;
      throw error;
    },
  );
}
