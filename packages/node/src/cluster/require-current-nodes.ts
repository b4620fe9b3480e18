import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import { verifyObject } from "../store/signed-object.ts";

const entrySchema = z.object({ id: z.string(), seenAt: z.iso.datetime() });

export interface RequireCurrentNodesOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** A node without a heartbeat for this long is dead. */
  readonly deadAfterMs: number;
}

/**
 * Throws if a live node still writes with an earlier secret. It would refer to chunks that a rotation of the data replaces, and
 * that garbage collection then deletes.
 */
export async function requireCurrentNodes(options: RequireCurrentNodesOptions): Promise<void> {
  const { store, keyring, clock, deadAfterMs } = options;
  for await (const { key } of store.list("nodes/")) {
    const stored = await store.get(key);
    const verified = stored && verifyObject(keyring, key, stored.bytes);
    if (verified === undefined || "fault" in verified || verified.secretId === keyring.currentId) continue;
    const entry = entrySchema.parse(JSON.parse(Buffer.from(verified.content).toString()));
    if (clock.now().getTime() - Date.parse(entry.seenAt) >= deadAfterMs) continue;
    throw new SandboxError("node_uses_earlier_secret", {
      message: `node ${entry.id} still writes with the secret ${verified.secretId}, not with the current one, ${keyring.currentId}`,
      details: { id: entry.id },
    });
  }
}
