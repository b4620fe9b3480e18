import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { SandboxError } from "@sandpiper/core";
import type { SavedAgent } from "./agent.ts";

const FILE = "agent.bin";

/** Captures the whole state synchronously, so that the agent may continue at once. */
export function writeCheckpoint(directory: string, saved: SavedAgent): Promise<void> {
  return writeFile(join(directory, FILE), serialize(saved));
}

export async function readCheckpoint(directory: string): Promise<SavedAgent> {
  try {
    return deserialize(await readFile(join(directory, FILE))) as SavedAgent;
  } catch (cause) {
    throw new SandboxError("checkpoint_damaged", {
      message: `the checkpoint in ${directory} cannot be read`,
      hint: "use an earlier checkpoint",
      cause,
    });
  }
}
