import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

/** What set-up builds: the image of sandboxes, and the one of machines that containers run in. */
export type ImageName = "image" | "docker-image";

/** Where set-up keeps what it made. */
export function setUpCache(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");
}

/** The newest root of that name that set-up put together, as a directory of its cache. */
export async function findImageRoot(name: ImageName): Promise<string | undefined> {
  const directory = join(setUpCache(), name);
  const names = (await readdir(directory).catch(() => [])).filter((entry) => !entry.startsWith("."));
  const found = await Promise.all(
    names.map(async (entry) => ({
      path: join(directory, entry),
      madeAtMs: (await stat(join(directory, entry))).mtimeMs,
    })),
  );
  return found.sort((one, other) => one.madeAtMs - other.madeAtMs).at(-1)?.path;
}
