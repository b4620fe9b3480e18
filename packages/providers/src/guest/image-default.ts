import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "../host/cache-directory.ts";

/** The newest root filesystem that set-up built, in its cache. */
export function findDefaultRoot(): Promise<string | undefined> {
  return findNewest("image");
}

/** The newest root filesystem for machines with Docker Engine. */
export function findDockerRoot(): Promise<string | undefined> {
  return findNewest("docker-image");
}

async function findNewest(name: string): Promise<string | undefined> {
  const directory = join(cacheDirectory(), name);
  const names = (await readdir(directory).catch(() => [])).filter((name) => !name.startsWith("."));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(directory, name), madeAtMs: (await stat(join(directory, name))).mtimeMs })),
  );
  return found.sort((one, other) => one.madeAtMs - other.madeAtMs).at(-1)?.path;
}
