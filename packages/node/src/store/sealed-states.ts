import {
  type ObjectStore,
  type PutCondition,
  SandboxError,
  type StoredObject,
  type StoredObjectInfo,
} from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { openObject, sealObject } from "./sealed-objects.ts";

const SEALED = /^(?:states|secrets)\//;

/** A store whose states of sandboxes and secrets of tenants are encrypted and authenticated. All other objects pass unchanged. */
export class SealedStates implements ObjectStore {
  readonly label: string;
  readonly #store: ObjectStore;
  readonly #keyring: Keyring;

  constructor(store: ObjectStore, keyring: Keyring) {
    this.label = store.label;
    this.#store = store;
    this.#keyring = keyring;
  }

  async get(key: string): Promise<StoredObject | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined || !SEALED.test(key)) return stored;
    const opened = openObject(this.#keyring, key, stored.bytes);
    if ("fault" in opened) {
      if (opened.newer !== undefined) throw tooNew(opened.newer);
      throw damaged(key, this.#store, opened.fault);
    }
    return { ...stored, bytes: opened.content };
  }

  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    const sealed = SEALED.test(key) ? sealObject(this.#keyring, key, bytes) : bytes;
    return this.#store.put(key, sealed, condition);
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#store.head(key);
  }

  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#store.delete(key, condition);
  }

  list(prefix: string): AsyncIterable<StoredObjectInfo> {
    return this.#store.list(prefix);
  }
}

/** Names no object: every caller of the sandbox sees the message. */
function tooNew(versions: { readonly found: number; readonly known: number }): SandboxError {
  return new SandboxError("state_too_new", {
    message: `the state of the sandbox in the store has format ${versions.found}, but this node reads at most format ${versions.known}; it was not changed`,
    details: versions,
  });
}

function damaged(key: string, { label }: ObjectStore, fault: string): SandboxError {
  return new SandboxError("object_damaged", {
    message: `cannot read ${key} in the store ${label}: ${fault}; the object was not changed`,
    details: { key, store: label },
  });
}
