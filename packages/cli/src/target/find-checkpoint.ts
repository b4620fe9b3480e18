import type { CheckpointResource, Client, Sandbox } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import { FULL_ID, findSandbox } from "./find-sandbox.ts";
import { pick } from "./pick.ts";

/** Resolves an ID, the beginning of one, or a name among the checkpoints of a sandbox. */
export async function findCheckpoint(sandbox: Sandbox, text: string): Promise<CheckpointResource> {
  return pick("checkpoint", text, await sandbox.checkpoints());
}

/** Resolves a whole checkpoint ID, or `SANDBOX:CHECKPOINT` with names or beginnings of IDs. */
export async function findCheckpointId(client: Client, text: string): Promise<string> {
  if (FULL_ID.test(text)) return text;
  // Names of sandboxes may contain colons, names of checkpoints cannot.
  const colon = text.lastIndexOf(":");
  if (colon < 1) {
    const message = `checkpoint ${JSON.stringify(text)} is not a whole ID, and its sandbox is not named`;
    throw usageError(message, `use the whole ID, or SANDBOX:${text}`);
  }
  const sandbox = await findSandbox(client, text.slice(0, colon));
  return (await findCheckpoint(sandbox, text.slice(colon + 1))).id;
}
