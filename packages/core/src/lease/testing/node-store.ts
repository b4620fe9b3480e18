import type { ObjectStore, PutCondition, StoredObject, StoredObjectInfo } from "../../store/object-store.ts";

/** Decides whether and when a call takes effect, and which answer its caller gets. */
export type Network = <T>(call: StoreCall, effect: () => Promise<T>) => Promise<T>;

export interface StoreCall {
  readonly operation: "get" | "put" | "delete";
  readonly key: string;
}

/** A shared store as one node reaches it, through its own network. */
export class NodeStore implements ObjectStore {
  readonly label: string;
  readonly #shared: ObjectStore;
  readonly #network: Network;

  constructor(shared: ObjectStore, network: Network) {
    this.label = shared.label;
    this.#shared = shared;
    this.#network = network;
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#network({ operation: "get", key }, () => this.#shared.get(key));
  }

  put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    return this.#network({ operation: "put", key }, () => this.#shared.put(key, bytes, condition));
  }

  delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#network({ operation: "delete", key }, () => this.#shared.delete(key, condition));
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#shared.head(key);
  }

  list(prefix: string): AsyncIterable<StoredObjectInfo> {
    return this.#shared.list(prefix);
  }
}
