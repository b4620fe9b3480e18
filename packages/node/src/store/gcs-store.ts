import { randomUUID } from "node:crypto";
import type * as Gcs from "@google-cloud/storage";
import {
  type Clock,
  checkObjectSize,
  checkStoreKey,
  checkStorePrefix,
  type ObjectStore,
  type PutCondition,
  pause,
  type StoredObject,
  type StoredObjectInfo,
  systemClock,
} from "@sandpiper/core";
import { conditionCheck } from "./check-conditions.ts";
import { gcsError, isAbsent, isRateLimited, isTransient, notConfigured, statusOf } from "./gcs-error.ts";
import { download, infoOf, markOf, upload } from "./gcs-object.ts";
import { unknownOutcome } from "./unknown-outcome.ts";

const RESPONSE_TIMEOUT_MS = 15_000;
const MAX_ATTEMPTS = 3;
/** Cloud Storage accepts about one write per second to an object, so the pauses must add up to more. */
const MAX_RATE_LIMITED_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;

export interface GcsStoreOptions {
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
  readonly clock?: Clock;
}

/** What the attempts of one request have left open. */
interface History {
  /** Whether an attempt without a response may have taken effect. */
  isUncertain: boolean;
}

/**
 * Stores objects in a bucket of Google Cloud Storage. An object's tag is its generation: it changes with every write, and
 * conditional writes and deletions name it. A mark in the object's metadata identifies a write whose response was lost.
 */
export class GcsStore implements ObjectStore {
  readonly label: string;
  readonly #bucketName: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  #bucket: Promise<Gcs.Bucket> | undefined;
  #checkConditions: (() => Promise<void>) | undefined;

  constructor({ bucket, prefix, clock = systemClock }: GcsStoreOptions) {
    this.#bucketName = bucket;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
    this.#clock = clock;
    this.label = `gs://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#attempt(key, async () => {
      const checkSize = (size: number, tag: string) => checkObjectSize({ key, size, tag }, this.label);
      const found = await this.#request((bucket) => download(this.#file(bucket, key), checkSize)).catch(
        undefinedIfAbsent,
      );
      return found && { key, size: found.bytes.length, ...found };
    });
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#attempt(key, async () => {
      const found = await this.#metadata(key);
      return found && infoOf(key, found);
    });
  }

  async put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    checkStoreKey(key);
    if (condition !== undefined) await this.#untilConditionsChecked();
    return this.#put(key, bytes, condition);
  }

  async delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    checkStoreKey(key);
    if (condition !== undefined) await this.#untilConditionsChecked();
    return this.#delete(key, condition);
  }

  async *list(prefix: string): AsyncIterable<StoredObjectInfo> {
    checkStorePrefix(prefix);
    const fields = "items(name,size,updated,generation),nextPageToken";
    let query: Gcs.GetFilesOptions | null = { prefix: `${this.#prefix}${prefix}`, autoPaginate: false, fields };
    try {
      while (query !== null) {
        const page: Gcs.GetFilesOptions = query;
        const [files, next]: Gcs.GetFilesResponse = await this.#request((bucket) => bucket.getFiles(page));
        // With `fields`, the client returns metadata, contrary to its types.
        for (const metadata of files as unknown as Gcs.FileMetadata[]) {
          yield infoOf(metadata.name?.slice(this.#prefix.length) ?? "", metadata);
        }
        query = next ?? null;
      }
    } catch (thrown) {
      throw gcsError(thrown, this.label);
    }
  }

  #put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    return this.#attempt(key, async () => {
      const mark = randomUUID();
      const history: History = { isUncertain: false };
      try {
        return await this.#request((bucket) => upload(this.#file(bucket, key), { bytes, mark, condition }), history);
      } catch (thrown) {
        if (!history.isUncertain && statusOf(thrown) === 412) return undefined;
        if (!history.isUncertain) throw thrown;
        const found = await this.#metadata(key);
        if (found !== undefined && markOf(found) === mark) return infoOf(key, found).tag;
        throw unknownOutcome(key, this.label, thrown);
      }
    });
  }

  #delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#attempt(key, async () => {
      const history: History = { isUncertain: false };
      const options = condition === undefined ? {} : { ifGenerationMatch: condition.ifMatch };
      try {
        await this.#request((bucket) => this.#file(bucket, key).delete(options), history);
        return true;
      } catch (thrown) {
        if (condition === undefined && isAbsent(thrown)) return true;
        if (statusOf(thrown) !== 412 && !isAbsent(thrown)) throw thrown;
        // An earlier attempt may have deleted the object, or another node may have.
        if (history.isUncertain) throw unknownOutcome(key, this.label, thrown);
        return false;
      }
    });
  }

  #metadata(key: string): Promise<Gcs.FileMetadata | undefined> {
    return this.#request(async (bucket) => (await this.#file(bucket, key).getMetadata())[0]).catch(undefinedIfAbsent);
  }

  #file(bucket: Gcs.Bucket, key: string): Gcs.File {
    return bucket.file(`${this.#prefix}${key}`);
  }

  /** Google's own servers honour conditions. With an emulator that ignores them, two nodes could hold the same lease. */
  #untilConditionsChecked(): Promise<void> {
    if (!hasEmulator()) return Promise.resolve();
    this.#checkConditions ??= conditionCheck({
      label: this.label,
      put: (key, bytes, condition) => this.#put(key, bytes, condition),
      delete: (key, condition) => this.#delete(key, condition),
    });
    return this.#checkConditions();
  }

  async #attempt<T>(key: string, work: () => Promise<T>): Promise<T> {
    checkStoreKey(key);
    try {
      return await work();
    } catch (thrown) {
      throw gcsError(thrown, this.label);
    }
  }

  async #request<T>(work: (bucket: Gcs.Bucket) => Promise<T>, history?: History): Promise<T> {
    const bucket = await this.#open();
    return this.#repeat(() => work(bucket), history);
  }

  /** The client's own repetition is disabled: it does not report whether it repeated a request. */
  async #repeat<T>(work: () => Promise<T>, history: History = { isUncertain: false }): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (thrown) {
        if (isTransient(thrown)) history.isUncertain = true;
        const most = isRateLimited(thrown) ? MAX_RATE_LIMITED_ATTEMPTS : isTransient(thrown) ? MAX_ATTEMPTS : 1;
        if (attempt >= most) throw thrown;
        await pause(this.#clock, FIRST_PAUSE_MS * 2 ** (attempt - 1) * (1 + Math.random()));
      }
    }
  }

  #open(): Promise<Gcs.Bucket> {
    this.#bucket ??= this.#connect().catch((thrown) => {
      this.#bucket = undefined;
      throw thrown;
    });
    return this.#bucket;
  }

  /** Loads the client on first use, because it is large. */
  async #connect(): Promise<Gcs.Bucket> {
    const { Storage } = await import("@google-cloud/storage");
    const storage = new Storage({ timeout: RESPONSE_TIMEOUT_MS, retryOptions: { autoRetry: false } });
    if (hasEmulator()) {
      // The client leaves the API's path out of the URL of an emulator, except in uploads.
      storage.baseUrl = `${storage.apiEndpoint}/storage/v1`;
    } else {
      await storage.authClient.getClient().catch((thrown) => {
        throw notConfigured(thrown, this.label);
      });
    }
    const bucket = storage.bucket(this.#bucketName);
    // Reads answer 404 both to a missing object and to a missing bucket; listings only to the latter.
    const probe = { prefix: this.#prefix, maxResults: 1, autoPaginate: false };
    await this.#repeat(() => bucket.getFiles(probe)).catch((thrown) => {
      throw gcsError(thrown, this.label);
    });
    return bucket;
  }
}

function hasEmulator(): boolean {
  return process.env["STORAGE_EMULATOR_HOST"] !== undefined;
}

function undefinedIfAbsent(thrown: unknown): undefined {
  if (isAbsent(thrown)) return undefined;
  throw thrown;
}
