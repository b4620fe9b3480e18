import type { Keyring } from "../auth/keyring.ts";
import { type Opened, open, seal } from "./sealed-bytes.ts";

const PURPOSE = "sandbox objects";
const JSON_TEXT = 0;

/** Encrypts an object for its place in the store: a node can open it before it knows the tenant. */
export function sealObject(keyring: Keyring, name: string, content: Uint8Array): Uint8Array {
  const key = keyring.key(PURPOSE) as Buffer;
  return Buffer.concat(seal(content, { name, key, secretId: keyring.currentId, kind: JSON_TEXT }));
}

export function openObject(keyring: Keyring, name: string, stored: Uint8Array): Opened {
  return open(stored, { name, keyOf: (secretId) => keyring.key(PURPOSE, { secretId }) });
}
