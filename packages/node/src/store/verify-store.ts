import type { ObjectStore } from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { openManifest } from "./checkpoint-manifest.ts";
import { openObject } from "./sealed-objects.ts";
import { verifyObject } from "./signed-object.ts";
import { isControlObject } from "./signed-store.ts";

const CONTROL = ["cluster.json", "keys.json", "locks/", "quotas/", "names/", "nodes/"];
const SEALED = ["states/", "secrets/"];
const PREFIXES = [...CONTROL, ...SEALED, "checkpoints/"];

export interface BadObject {
  readonly key: string;
  readonly fault: string;
}

/** The objects that nodes refuse. Reads every object except chunks, and changes nothing. */
export async function* verifyStore(store: ObjectStore, keyring: Keyring): AsyncIterable<BadObject> {
  for (const prefix of PREFIXES) {
    for await (const { key } of store.list(prefix)) {
      const fault = await faultOf(store, keyring, key);
      if (fault !== undefined) yield { key, fault };
    }
  }
}

async function faultOf(store: ObjectStore, keyring: Keyring, key: string): Promise<string | undefined> {
  let bytes: Uint8Array | undefined;
  try {
    bytes = (await store.get(key))?.bytes;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  // A node deleted it after it was listed.
  if (bytes === undefined) return undefined;
  if (isControlObject(key)) {
    const verified = verifyObject(keyring, key, bytes);
    if (!("fault" in verified)) return undefined;
    return verified.fault === "unknown secret"
      ? `signed with the secret ${verified.secretId}, which is not configured`
      : `${verified.fault === "unsigned" ? "no" : "an invalid"} signature`;
  }
  const isSealed = SEALED.some((prefix) => key.startsWith(prefix));
  const opened = isSealed ? openObject(keyring, key, bytes) : openManifest(keyring, key, bytes);
  return "fault" in opened ? opened.fault : undefined;
}
