import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The newest root that set-up put together, as a directory of its cache. */
export function findDefaultRoot(cache: string): Promise<string | undefined> {
  return findNewest(join(cache, "image"));
}

/** The same for machines that containers run in. */
export function findDockerRoot(cache: string): Promise<string | undefined> {
  return findNewest(join(cache, "docker-image"));
}

async function findNewest(directory: string): Promise<string | undefined> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => !name.startsWith("."));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(directory, name), madeAtMs: (await stat(join(directory, name))).mtimeMs })),
  );
  return found.sort((one, other) => one.madeAtMs - other.madeAtMs).at(-1)?.path;
}
