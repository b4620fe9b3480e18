import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** What set-up builds for this machine when it is asked to, by the names of its steps. */
export type TunedPart = "tuned-qemu" | "tuned-kernel";

/** Its file of that name, if it was built. */
export async function findTuned(part: TunedPart, file: string, cache: string): Promise<string | undefined> {
  const names = await readdir(join(cache, part)).catch(() => []);
  return names.map((name) => join(cache, part, name, file)).find((path) => existsSync(path));
}
