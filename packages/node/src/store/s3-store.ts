import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import type * as S3 from "@aws-sdk/client-s3";
import {
  checkObjectSize,
  checkStoreKey,
  checkStorePrefix,
  type ObjectStore,
  type PutCondition,
  SandboxError,
  type StoredObject,
  type StoredObjectInfo,
} from "@sandpiper/core";
import { conditionCheck } from "./check-conditions.ts";
import { isNamed, s3Error, statusOf, wasRepeated } from "./s3-error.ts";
import { unknownOutcome } from "./unknown-outcome.ts";

const CONNECT_TIMEOUT_MS = 3_000;
const RESPONSE_TIMEOUT_MS = 15_000;
const MAX_SOCKETS = 64;
/** S3 requests a retry when two conditional writes conflict. */
const MAX_ATTEMPTS = 5;

const MARK_BYTES = 18;
const NEWLINE = 0x0a;
/** A newline, so that text stays readable, and the mark in base64. */
const MARK_LENGTH = 1 + (MARK_BYTES / 3) * 4;

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
 * Stores objects in a bucket, with S3's conditional writes. Each object ends in a unique mark. S3's tags are hashes of the content,
 * so without the mark two writes of the same content would share a tag. The mark also identifies a write whose response was lost.
 */
export class S3Store implements ObjectStore {
  readonly label: string;
  readonly #bucket: string;
  readonly #prefix: string;
  #connection: Promise<Connection> | undefined;
  #checkConditions: (() => Promise<void>) | undefined;

  constructor({ bucket, prefix }: S3StoreOptions) {
    this.#bucket = bucket;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
    this.label = `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
  }

  get(key: string): Promise<StoredObject | undefined> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const read = client.send(new sdk.GetObjectCommand(this.#target(key)));
      const response = await read.catch(undefinedIfAbsent);
      if (response?.Body === undefined) return undefined;
      const { Body: body, ETag: tag = "", ContentLength: length = 0 } = response;
      try {
        checkObjectSize({ key, tag, size: length - MARK_LENGTH }, this.label);
      } catch (thrown) {
        (body as Readable).destroy();
        throw thrown;
      }
      const bytes = this.#withoutMark(key, await body.transformToByteArray(), tag);
      return { key, size: bytes.length, tag, bytes };
    });
  }

  head(key: string): Promise<StoredObjectInfo | undefined> {
    return this.#attempt(key, async ({ sdk, client }) => {
      const response = await client.send(new sdk.HeadObjectCommand(this.#target(key))).catch(undefinedIfAbsent);
      if (response === undefined) return undefined;
      const size = Math.max(0, (response.ContentLength ?? 0) - MARK_LENGTH);
      return { key, size, modifiedAt: wholeSecond(response.LastModified), tag: response.ETag ?? "" };
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
    // S3 reports success for deleting an absent object, regardless of the condition.
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
          yield { key, size: Math.max(0, Size - MARK_LENGTH), modifiedAt: wholeSecond(LastModified), tag: ETag };
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
      for (let attempt = 1; ; attempt += 1) {
        try {
          return (await client.send(new sdk.PutObjectCommand(command))).ETag ?? "";
        } catch (thrown) {
          const status = statusOf(thrown);
          if (status === 409 && attempt < MAX_ATTEMPTS) continue;
          const isRefused = condition !== undefined && isConditionRefused(thrown);
          // The only request was refused, so nothing was written.
          if (isRefused && attempt === 1 && !wasRepeated(thrown)) return undefined;
          if (!isRefused && status !== undefined && status < 500) throw thrown;
          const written = await this.#findMarked({ sdk, client }, key, mark);
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
        // The SDK repeated the request: its first attempt may have deleted the object, or another node may have.
        if (wasRepeated(thrown)) throw unknownOutcome(key, this.label, thrown);
        return false;
      }
    });
  }

  /** The object's tag if it ends in this mark. */
  async #findMarked({ sdk, client }: Connection, key: string, mark: Uint8Array): Promise<string | undefined> {
    const command = new sdk.GetObjectCommand({ ...this.#target(key), Range: `bytes=-${MARK_LENGTH}` });
    const response = await client.send(command).catch(undefinedIfAbsent);
    const end = await response?.Body?.transformToByteArray();
    return end !== undefined && Buffer.compare(end, mark) === 0 ? response?.ETag : undefined;
  }

  /** With a server that ignores conditions, two nodes could hold the same lease. */
  #untilConditionsChecked(): Promise<void> {
    this.#checkConditions ??= conditionCheck({
      label: this.label,
      put: (key, bytes, condition) => this.#put(key, bytes, condition),
      delete: (key, condition) => this.#delete(key, condition),
    });
    return this.#checkConditions();
  }

  #withoutMark(key: string, stored: Uint8Array, tag: string): Uint8Array {
    const end = stored.length - MARK_LENGTH;
    if (end >= 0 && stored[end] === NEWLINE) return stored.subarray(0, end);
    throw new SandboxError("object_damaged", {
      message: `${key} in ${this.label} was not written by Sandpiper: it lacks the mark that ends every object; another program created, replaced or truncated it, and the object was not changed`,
      hint: "restore it from a backup of the store, or delete it; let no other program write to the bucket or prefix",
      details: { key, store: this.label, tag },
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

  /** Loads the SDK on first use, because it is large. */
  #connect(): Promise<Connection> {
    this.#connection ??= import("@aws-sdk/client-s3").then((sdk) => {
      const hasEndpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].some((name) => process.env[name]);
      const client = new sdk.S3Client({
        forcePathStyle: hasEndpoint,
        // Not every server supports checksums in trailers, and requests are signed with the hash of their content anyway.
        requestChecksumCalculation: "WHEN_REQUIRED",
        responseChecksumValidation: "WHEN_REQUIRED",
        requestHandler: {
          connectionTimeout: CONNECT_TIMEOUT_MS,
          requestTimeout: RESPONSE_TIMEOUT_MS,
          httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
          httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
        },
      });
      return { sdk, client };
    });
    return this.#connection;
  }
}

function createMark(): Uint8Array {
  return Buffer.from(`\n${randomBytes(MARK_BYTES).toString("base64url")}`);
}

/** 404: no object can match. 409: other writes conflicted with every attempt. */
function isConditionRefused(thrown: unknown): boolean {
  const status = statusOf(thrown);
  return status === 412 || status === 409 || (status === 404 && !isNamed(thrown, "NoSuchBucket"));
}

function undefinedIfAbsent(thrown: unknown): undefined {
  if (statusOf(thrown) === 404 && !isNamed(thrown, "NoSuchBucket")) return undefined;
  throw thrown;
}

/** Listings have milliseconds and HEAD responses do not; the same object must have one modification time. */
function wholeSecond(instant: Date | undefined): Date {
  return new Date(Math.floor((instant?.getTime() ?? 0) / 1000) * 1000);
}
