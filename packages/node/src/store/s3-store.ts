import type * as S3 from "@aws-sdk/client-s3";
import {
  checkStoreKey,
  checkStorePrefix,
  type ObjectStore,
  type PutCondition,
  SandboxError,
  type StoredObject,
  type StoredObjectInfo,
} from "@sandpiper/core";
import { checkConditions } from "./check-conditions.ts";
import { isNamed, s3Error, statusOf, unknownOutcome, wasRepeated } from "./s3-error.ts";
import { createMark, MARK_LENGTH, splitMark } from "./writer-mark.ts";

const CONNECT_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 15_000;
const MAX_SOCKETS = 64;
/** S3 asks to try again when two conditional writes meet; one of them then finds the other's. */
const MEETINGS = 5;

export interface S3StoreOptions {
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
}

interface Connection {
  readonly sdk: typeof S3;
  readonly client: S3.S3Client;
}

/**
 * Objects in a bucket, with S3's conditional writes. Each object ends in a mark of its own: S3's tags are hashes of the content,
 * and must differ although the content is the same; and a writer whose answer was lost knows its write again.
 */
export class S3Store implements ObjectStore {
  readonly label: string;
  readonly #bucket: string;
  readonly #prefix: string;
  #connection: Promise<Connection> | undefined;
  #hasConditions: Promise<void> | undefined;

  constructor({ bucket, prefix }: S3StoreOptions) {
    this.#bucket = bucket;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
    this.label = `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const read = client.send(new sdk.GetObjectCommand(this.#target(key)));
      const answer = await read.catch(undefinedIfAbsent);
      if (answer?.Body === undefined) return undefined;
      const { bytes } = this.#split(key, await answer.Body.transformToByteArray());
      return { key, size: bytes.length, modifiedAt: wholeSecond(answer.LastModified), tag: answer.ETag ?? "", bytes };
    });
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const answer = await client.send(new sdk.HeadObjectCommand(this.#target(key))).catch(undefinedIfAbsent);
      if (answer === undefined) return undefined;
      const size = (answer.ContentLength ?? 0) - MARK_LENGTH;
      return { key, size, modifiedAt: wholeSecond(answer.LastModified), tag: answer.ETag ?? "" };
    });
  }

  async put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    checkStoreKey(key);
    if (condition !== undefined) await this.#untilConditionsChecked();
    return this.#put(key, bytes, condition);
  }

  async delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    checkStoreKey(key);
    if (condition === undefined) return this.#delete(key);
    await this.#untilConditionsChecked();
    // To delete what is not there succeeds with every condition.
    return (await this.head(key))?.tag === condition.ifMatch && this.#delete(key, condition);
  }

  async *list(prefix: string): AsyncIterable<StoredObjectInfo> {
    checkStorePrefix(prefix);
    try {
      const { sdk, client } = await this.#connect();
      const query = { Bucket: this.#bucket, Prefix: `${this.#prefix}${prefix}` };
      for await (const page of sdk.paginateListObjectsV2({ client }, query)) {
        for (const { Key = "", Size = 0, LastModified, ETag = "" } of page.Contents ?? []) {
          const key = Key.slice(this.#prefix.length);
          yield { key, size: Size - MARK_LENGTH, modifiedAt: wholeSecond(LastModified), tag: ETag };
        }
      }
    } catch (thrown) {
      throw s3Error(thrown, this.label);
    }
  }

  #put(key: string, bytes: Uint8Array, condition?: PutCondition): Promise<string | undefined> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const mark = createMark();
      const command = {
        ...this.#target(key),
        Body: Buffer.concat([bytes, mark]),
        ...(condition !== undefined && "ifAbsent" in condition ? { IfNoneMatch: "*" } : {}),
        ...(condition !== undefined && "ifMatch" in condition ? { IfMatch: condition.ifMatch } : {}),
      };
      for (let meeting = 1; ; meeting += 1) {
        try {
          return (await client.send(new sdk.PutObjectCommand(command))).ETag ?? "";
        } catch (thrown) {
          const status = statusOf(thrown);
          if (status === 409 && meeting < MEETINGS) continue;
          const isRefused = condition !== undefined && isConditionRefused(thrown);
          // One request, one answer: nothing was written.
          if (isRefused && meeting === 1 && !wasRepeated(thrown)) return undefined;
          if (!isRefused && status !== undefined && status < 500) throw thrown;
          const written = await this.#findOwn({ sdk, client }, key, mark);
          if (written !== undefined) return written;
          throw isRefused && !wasRepeated(thrown) ? thrown : unknownOutcome(key, this.label, thrown);
        }
      }
    });
  }

  #delete(key: string, condition?: { readonly ifMatch: string }): Promise<boolean> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const command = { ...this.#target(key), ...(condition === undefined ? {} : { IfMatch: condition.ifMatch }) };
      try {
        await client.send(new sdk.DeleteObjectCommand(command));
        return true;
      } catch (thrown) {
        if (condition === undefined || !isConditionRefused(thrown)) throw thrown;
        // Not there any more after a second request: the first one may have deleted it, or somebody else.
        if (wasRepeated(thrown)) throw unknownOutcome(key, this.label, thrown);
        return false;
      }
    });
  }

  /** The tag of an object that ends in this mark. */
  async #findOwn({ sdk, client }: Connection, key: string, mark: Uint8Array): Promise<string | undefined> {
    const command = new sdk.GetObjectCommand({ ...this.#target(key), Range: `bytes=-${MARK_LENGTH}` });
    const answer = await client.send(command).catch(undefinedIfAbsent);
    const end = await answer?.Body?.transformToByteArray();
    return end !== undefined && Buffer.compare(end, mark) === 0 ? answer?.ETag : undefined;
  }

  /** A server that knows no conditions ignores them, and two nodes would both believe that they hold a sandbox. */
  #untilConditionsChecked(): Promise<void> {
    this.#hasConditions ??= checkConditions({
      label: this.label,
      put: (key, bytes, condition) => this.#put(key, bytes, condition),
      delete: (key, condition) => this.#delete(key, condition),
    }).catch((thrown) => {
      this.#hasConditions = undefined;
      throw thrown;
    });
    return this.#hasConditions;
  }

  #split(key: string, stored: Uint8Array): { readonly bytes: Uint8Array } {
    const parts = splitMark(stored);
    if (parts !== undefined) return parts;
    throw new SandboxError("data_loss", {
      reason: "object_damaged",
      message: `${key} in the store ${this.label} was not written by Sandpiper, or not all of it is there`,
      details: { key },
    });
  }

  #target(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${key}` };
  }

  async #attempt<T>(key: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    checkStoreKey(key);
    try {
      return await work(await this.#connect());
    } catch (thrown) {
      throw s3Error(thrown, this.label);
    }
  }

  /** The SDK is large: only who uses a bucket loads it. */
  #connect(): Promise<Connection> {
    this.#connection ??= import("@aws-sdk/client-s3").then((sdk) => {
      const hasEndpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].some((name) => process.env[name]);
      const client = new sdk.S3Client({
        forcePathStyle: hasEndpoint,
        // Not every server knows checksums in trailers; requests are signed with their content's hash anyway.
        requestChecksumCalculation: "WHEN_REQUIRED",
        responseChecksumValidation: "WHEN_REQUIRED",
        requestHandler: {
          connectionTimeout: CONNECT_TIMEOUT_MS,
          requestTimeout: ANSWER_TIMEOUT_MS,
          httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
          httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
        },
      });
      return { sdk, client };
    });
    return this.#connection;
  }
}

/** 404: there is nothing that could match. 409: another write was faster, again and again. */
function isConditionRefused(thrown: unknown): boolean {
  const status = statusOf(thrown);
  return status === 412 || status === 409 || (status === 404 && !isNamed(thrown, "NoSuchBucket"));
}

function undefinedIfAbsent(thrown: unknown): undefined {
  if (statusOf(thrown) === 404 && !isNamed(thrown, "NoSuchBucket")) return undefined;
  throw thrown;
}

/** Listings are more precise than answers to a head; the same object must look the same. */
function wholeSecond(instant: Date | undefined): Date {
  return new Date(Math.floor((instant?.getTime() ?? 0) / 1000) * 1000);
}
