import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../../host/has-code.ts";

/** In a checkpoint, and in the directory of an instance that was restored from one. */
const FILE = "processes.json";

export async function writeEarlierProcesses(directory: string, ids: readonly string[]): Promise<void> {
  await writeFile(join(directory, FILE), JSON.stringify(ids));
}

/** Undefined for a new instance, and for checkpoints of earlier versions. */
export async function readEarlierProcesses(directory: string): Promise<readonly string[] | undefined> {
  try {
    const ids: unknown = JSON.parse(await readFile(join(directory, FILE), "utf8"));
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : undefined;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
