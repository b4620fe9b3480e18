import type { CheckpointResource, Client, Sandbox } from "@sandpiper/sdk";
import { usageError } from "../command/usage-error.ts";
import { FULL_ID, findSandbox } from "./find-sandbox.ts";
import { pick } from "./pick.ts";

/** The checkpoint of a sandbox that the user means by an id, the beginning of one, or a name. */
export async function findCheckpoint(sandbox: Sandbox, text: string): Promise<CheckpointResource> {
  return pick("checkpoint", text, await sandbox.checkpoints());
}

/** Where the sandbox is not known, the id of a checkpoint has to be whole; `SANDBOX:CHECKPOINT` may say less of both. */
export async function findCheckpointId(client: Client, text: string): Promise<string> {
  if (FULL_ID.test(text)) return text;
  // Names of checkpoints have no colon, those of sandboxes may.
  const colon = text.lastIndexOf(":");
  if (colon < 1) throw notWhole(text);
  const sandbox = await findSandbox(client, text.slice(0, colon));
  return (await findCheckpoint(sandbox, text.slice(colon + 1))).id;
}

function notWhole(text: string): Error {
  const hint = `write its whole id, or SANDBOX:${text}`;
  return usageError(`of which sandbox ${JSON.stringify(text)} is a checkpoint is not said`, hint);
}
