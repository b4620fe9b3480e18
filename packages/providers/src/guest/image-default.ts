import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The newest root that set-up put together, as a directory of its cache. */
export async function findDefaultRoot(cache: string): Promise<string | undefined> {
  const directory = join(cache, "image");
  const names = (await readdir(directory).catch(() => [])).filter((name) => !name.startsWith("."));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(directory, name), madeAtMs: (await stat(join(directory, name))).mtimeMs })),
  );
  return found.sort((one, other) => one.madeAtMs - other.madeAtMs).at(-1)?.path;
}
