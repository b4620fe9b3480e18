import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { currentOwner } from "./process-owner.ts";
import { removeAbandoned, transientName } from "./transient-name.ts";

/** Makes a file that gets its name only when it is complete; removes the drafts of dead programs. */
export async function publishFile(path: string, write: (draft: string) => Promise<void>): Promise<void> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await removeAbandoned(directory);
  const draft = transientName(`${path}.${crypto.randomUUID()}`, await currentOwner());
  try {
    await write(draft);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
