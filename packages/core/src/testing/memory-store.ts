import { type Clock, SandboxError, systemClock } from "@sandpiper/protocol";
import { checkObjectSize } from "../store/object-size.ts";
import type { ObjectStore, PutCondition, StoredObject, StoredObjectInfo } from "../store/object-store.ts";
import { checkStoreKey, checkStorePrefix } from "../store/store-key.ts";

/** One call, before it takes effect. */
export interface StoreCall {
  /** 1 for the store's first call. */
  readonly number: number;
  readonly operation: "get" | "head" | "put" | "delete" | "list";
  readonly key: string;
}

/** The fault of a call. */
export interface StoreFault {
  /** Before: nothing happened. After: it took effect, and only the answer is lost. */
  readonly fail?: "before" | "after";
  /** The delay before the call takes effect. */
  readonly delayMs?: number;
  /** The delay between the effect and the answer. */
  readonly answerDelayMs?: number;
}

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** The fault of a call; undefined for none. */
  readonly fault?: (call: StoreCall) => StoreFault | undefined;
}

/** A store for tests, which fails and delays calls on the test's command. */
export class MemoryStore implements ObjectStore {
  readonly label = "memory:";
  readonly #objects = new Map<string, StoredObject & StoredObjectInfo>();
  readonly #clock: Clock;
  readonly #fault: NonNullable<MemoryStoreOptions["fault"]>;
  #calls = 0;
  #writes = 0;

  constructor(options: MemoryStoreOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#fault = options.fault ?? (() => undefined);
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#call("get", key, () => {
      const object = this.#objects.get(key);
      if (object === undefined) return undefined;
      checkObjectSize(object, this.label);
      const { modifiedAt: _, ...rest } = object;
      return { ...rest, bytes: object.bytes.slice() };
    });
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#call("head", key, () => {
      const object = this.#objects.get(key);
      return object && infoOf(object);
    });
  }

  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    const copy = bytes.slice();
    return this.#call("put", key, () => {
      const present = this.#objects.get(key);
      if (condition !== undefined && "ifAbsent" in condition && present !== undefined) return undefined;
      if (condition !== undefined && "ifMatch" in condition && present?.tag !== condition.ifMatch) return undefined;
      const tag = `w${++this.#writes}`;
      this.#objects.set(key, { key, size: copy.length, modifiedAt: this.#clock.now(), tag, bytes: copy });
      return tag;
    });
  }

  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#call("delete", key, () => {
      if (condition !== undefined && this.#objects.get(key)?.tag !== condition.ifMatch) return false;
      this.#objects.delete(key);
      return true;
    });
  }

  async *list(prefix: string): AsyncIterable<StoredObjectInfo> {
    checkStorePrefix(prefix);
    const found = await this.#faulty("list", prefix, () =>
      [...this.#objects.values()].filter(({ key }) => key.startsWith(prefix)),
    );
    for (const object of found) yield infoOf(object);
  }

  async #call<T>(operation: StoreCall["operation"], key: string, effect: () => T): Promise<T> {
    checkStoreKey(key);
    return this.#faulty(operation, key, effect);
  }

  async #faulty<T>(operation: StoreCall["operation"], key: string, effect: () => T): Promise<T> {
    const fault = this.#fault({ number: ++this.#calls, operation, key });
    await this.#pause(fault?.delayMs);
    if (fault?.fail === "before") throw failure(operation, key);
    const result = effect();
    await this.#pause(fault?.answerDelayMs);
    if (fault?.fail === "after") throw failure(operation, key);
    return result;
  }

  async #pause(delayMs = 0): Promise<void> {
    if (delayMs > 0) await new Promise<void>((resolve) => this.#clock.schedule(delayMs, resolve));
  }
}

function infoOf({ bytes: _, ...info }: StoredObject & StoredObjectInfo): StoredObjectInfo {
  return info;
}

function failure(operation: string, key: string): SandboxError {
  return new SandboxError("store_unreachable", { message: `Could not ${operation} ${key}` });
}
