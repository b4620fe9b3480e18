import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The newest root filesystem that set-up built, in its cache. */
export function findDefaultRoot(cache: string): Promise<string | undefined> {
  return findNewest(join(cache, "image"));
}

/** The newest root filesystem for machines with Docker Engine. */
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
