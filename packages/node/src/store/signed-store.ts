import {
  type Clock,
  type ObjectStore,
  type PutCondition,
  SandboxError,
  type StoredObject,
  type StoredObjectInfo,
} from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { type SignatureFault, signObject, TRAILER_LENGTH, verifyObject } from "./signed-object.ts";

/** Bounds the memory for the versions of locks: about 10 MB. */
const MAX_REMEMBERED = 50_000;

const SIGNED = /^(?:cluster\.json$|keys\.json$|locks\/|quotas\/|names\/|nodes\/)/;
/** Entries of nodes carry their time, and their writer does not read them first. */
const UNVERSIONED = /^nodes\//;

export interface SignedStoreOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

/** Whether nodes accept the object only with a signature. */
export function isControlObject(key: string): boolean {
  return SIGNED.test(key);
}

/**
 * Signs the objects that control a cluster, and refuses objects that no node of the cluster wrote. It remembers the newest version
 * of each that it has seen, and refuses older ones. Other objects pass unchanged.
 */
export class SignedStore implements ObjectStore {
  readonly label: string;
  readonly #store: ObjectStore;
  readonly #keyring: Keyring;
  readonly #clock: Clock;
  /** The highest sequence number seen of each object, the most recent last. */
  readonly #newest = new Map<string, number>();

  constructor({ store, keyring, clock }: SignedStoreOptions) {
    this.label = store.label;
    this.#store = store;
    this.#keyring = keyring;
    this.#clock = clock;
  }

  async get(key: string): Promise<StoredObject | undefined> {
    if (!isControlObject(key)) return await this.#store.get(key);
    // A version that is seen while this read is under way may be newer than what it returns.
    const newest = this.#newest.get(key) ?? 0;
    const found = await this.#read(key);
    if (found === undefined || found.sequence >= newest) return found?.object;
    // A network file system may show an old version for a moment.
    const again = await this.#read(key);
    if (again === undefined || again.sequence >= newest) return again?.object;
    throw replayed(key, this.label, again.object.tag);
  }

  async head(key: string): Promise<StoredObjectInfo | undefined> {
    const info = await this.#store.head(key);
    return info && withoutTrailer(info);
  }

  async put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    if (!isControlObject(key)) return await this.#store.put(key, bytes, condition);
    // A node that has not seen the object, which may be deleted, still writes a higher number than all earlier versions had.
    const sequence = Math.max(this.#clock.now().getTime(), (this.#newest.get(key) ?? 0) + 1);
    const tag = await this.#store.put(key, signObject(this.#keyring, { key, sequence }, bytes), condition);
    if (tag !== undefined) this.#remember(key, sequence);
    return tag;
  }

  async delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    const isDeleted = await this.#store.delete(key, condition);
    const newest = this.#newest.get(key);
    // The deleted version is old, too.
    if (isDeleted && newest !== undefined) this.#remember(key, newest + 1);
    return isDeleted;
  }

  async *list(prefix: string): AsyncIterable<StoredObjectInfo> {
    for await (const info of this.#store.list(prefix)) yield withoutTrailer(info);
  }

  async #read(key: string): Promise<{ readonly object: StoredObject; readonly sequence: number } | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const verified = verifyObject(this.#keyring, key, stored.bytes);
    if ("fault" in verified) throw forged(verified, stored, this.label);
    const { content, sequence } = verified;
    this.#remember(key, sequence);
    return { object: { ...stored, bytes: content, size: content.length }, sequence };
  }

  #remember(key: string, sequence: number): void {
    if (UNVERSIONED.test(key)) return;
    const newest = Math.max(sequence, this.#newest.get(key) ?? 0);
    this.#newest.delete(key);
    this.#newest.set(key, newest);
    if (this.#newest.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#newest.keys();
    if (oldest !== undefined) this.#newest.delete(oldest);
  }
}

/** Why an object was not accepted, if that is the error. Its tag lets the rightful writer replace it. */
export function isRefusedObject(thrown: unknown): thrown is SandboxError {
  return (
    thrown instanceof SandboxError && ["object_forged", "object_replayed", "object_damaged"].includes(thrown.reason)
  );
}

function withoutTrailer(info: StoredObjectInfo): StoredObjectInfo {
  return isControlObject(info.key) ? { ...info, size: Math.max(0, info.size - TRAILER_LENGTH) } : info;
}

function forged(fault: SignatureFault, { key, tag }: StoredObject, store: string): SandboxError {
  const message = `${key} in ${store} was not written by a node of this cluster: ${describeFault(fault)}; this node ignores it`;
  return new SandboxError("object_forged", { message, details: { key, store, tag } });
}

function describeFault(fault: SignatureFault): string {
  if (fault.fault === "unsigned") return "it has no signature";
  if (fault.fault === "invalid") return "its signature is invalid";
  return `it is signed with the secret ${fault.secretId}, which this node does not have`;
}

function replayed(key: string, store: string, tag: string): SandboxError {
  const message = `${key} in ${store} is older than a version that this node has seen; this node ignores it`;
  return new SandboxError("object_replayed", { message, details: { key, store, tag } });
}
