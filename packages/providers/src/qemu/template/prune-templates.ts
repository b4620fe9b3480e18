import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Each takes as much of the disk as its guest has used of its memory: some tens of MiB. */
const MAX_TEMPLATES = 16;

/** Removes the templates that were not used for the longest time. Machines that were made from them have all they need. */
export async function pruneTemplates(directory: string): Promise<void> {
  const entries = (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const templates = await Promise.all(
    entries.map(async ({ name }) => {
      const path = join(directory, name);
      return {
        path,
        usedAtMs: await stat(path).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        ),
      };
    }),
  );
  const excess = templates.sort((one, other) => other.usedAtMs - one.usedAtMs).slice(MAX_TEMPLATES);
  await Promise.all(excess.map(({ path }) => rm(path, { recursive: true, force: true })));
}
