import type { ObjectStore } from "@sandpiper/core";
import type { BackupObject } from "./backup-index.ts";
import { sha256 } from "./backup-index.ts";

/** Writes objects to a backup, and keeps what its index lists. */
export class BackupWriter {
  readonly store: ObjectStore;
  readonly #objects = new Map<string, BackupObject>();
  readonly #onBytes: (bytes: number) => void;
  /** Chunks that the backup has. */
  readonly chunks = new Set<string>();
  bytes = 0;

  constructor(store: ObjectStore, onBytes: (bytes: number) => void) {
    this.store = store;
    this.#onBytes = onBytes;
  }

  get objects(): readonly BackupObject[] {
    return [...this.#objects.values()];
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.store.put(key, bytes);
    this.#objects.set(key, { key, size: bytes.length, sha256: sha256(bytes) });
    this.count(bytes.length);
  }

  /** Forgets objects that the index must not list. */
  drop(prefix: string): void {
    for (const key of this.#objects.keys()) if (key.startsWith(prefix)) this.#objects.delete(key);
  }

  count(bytes: number): void {
    this.bytes += bytes;
    this.#onBytes(bytes);
  }
}
