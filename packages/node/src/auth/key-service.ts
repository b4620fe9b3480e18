import { randomBytes as cryptoRandomBytes, timingSafeEqual } from "node:crypto";
import { join } from "node:path";
import { type Clock, systemClock } from "@sandpiper/core";
import { type CreatedKey, type CreateKeyBody, type KeyResource, SandboxError } from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import { SqliteKeyRecords } from "../records/sqlite-key-records.ts";
import { apiKeyId, apiKeyText, hashApiKey, isUsable, type KeyRecord, keyResource } from "./api-key.ts";
import { writePrivateFile } from "./private-file.ts";

const ID_BYTES = 4;
const SECRET_BYTES = 32;

/** No key has this hash; an unknown id is compared with it, so that it takes as long as a known one. */
const noHash = Buffer.alloc(32);

export interface KeyServiceOptions {
  readonly clock?: Clock | undefined;
  readonly randomBytes?: ((size: number) => Uint8Array) | undefined;
}

/** The keys of the node. All are kept in memory too: this is their only writer, and every request looks one up. */
export class KeyService {
  readonly #records: SqliteKeyRecords;
  readonly #clock: Clock;
  readonly #randomBytes: (size: number) => Uint8Array;
  readonly #keys: Map<string, KeyRecord>;

  constructor(database: NodeDatabase, options: KeyServiceOptions = {}) {
    this.#records = new SqliteKeyRecords(database);
    this.#clock = options.clock ?? systemClock;
    this.#randomBytes = options.randomBytes ?? cryptoRandomBytes;
    this.#keys = new Map(this.#records.list().map((key) => [key.id, key]));
  }

  create(body: CreateKeyBody): CreatedKey {
    const id = this.#freeId();
    return this.#add(body, id, apiKeyText(id, this.#randomBytes(SECRET_BYTES)));
  }

  /** In the order of their making, revoked ones too. */
  list(): readonly KeyResource[] {
    return [...this.#keys.values()].map(keyResource);
  }

  /** From now on nobody gets in with it. */
  revoke(id: string): KeyResource {
    const key = this.#keys.get(id);
    if (key === undefined) {
      throw new SandboxError("not_found", {
        reason: "no_such_key",
        message: `there is no key ${JSON.stringify(id)}`,
        hint: "list the keys; a key's id is what stands between its two underscores",
      });
    }
    const revoked = { ...key, revokedAt: key.revokedAt ?? this.#clock.now() };
    this.#records.setRevoked(id, revoked.revokedAt);
    this.#keys.set(id, revoked);
    return keyResource(revoked);
  }

  /**
   * Makes sure that the owner of a node's directory can get in: where no key with the scope `admin` is valid, as at the
   * first start, one is made and written to `api-key` there. Undefined: there was one.
   */
  firstKey(home: string): CreatedKey | undefined {
    const now = this.#clock.now();
    const admins = [...this.#keys.values()].filter((key) => key.scopes.includes("admin"));
    if (admins.some((key) => isUsable(key, now))) return undefined;
    const id = this.#freeId();
    const text = apiKeyText(id, this.#randomBytes(SECRET_BYTES));
    // A key that is on disk but not in the records is replaced at the next start; the reverse would lock everybody out.
    writePrivateFile(join(home, "api-key"), `${text}\n`);
    return this.#add({ name: "first", tenant: "default", scopes: ["admin"] }, id, text);
  }

  /** Undefined for what is no key, unknown, expired or revoked: all take the same way. */
  verify(text: string): KeyRecord | undefined {
    const key = this.#keys.get(apiKeyId(text) ?? "");
    const isRight = timingSafeEqual(hashApiKey(text), key?.hash ?? noHash);
    return key !== undefined && isRight && isUsable(key, this.#clock.now()) ? key : undefined;
  }

  #add(body: CreateKeyBody, id: string, text: string): CreatedKey {
    const createdAt = this.#clock.now();
    const { maxSandboxes = null, maxMemoryMib = null, maxVcpuCount = null } = body.quota ?? {};
    const key: KeyRecord = {
      id,
      hash: hashApiKey(text),
      name: body.name,
      tenant: body.tenant ?? "default",
      scopes: [...new Set(body.scopes ?? ["sandboxes" as const])],
      quota: { maxSandboxes, maxMemoryMib, maxVcpuCount },
      createdAt,
      expiresAt: parseExpiry(body.expiresAt ?? null, createdAt),
      revokedAt: null,
    };
    this.#records.add(key);
    this.#keys.set(id, key);
    return { ...keyResource(key), key: text };
  }

  #freeId(): string {
    for (;;) {
      const id = Buffer.from(this.#randomBytes(ID_BYTES)).toString("hex");
      if (!this.#keys.has(id)) return id;
    }
  }
}

function parseExpiry(expiresAt: string | null, now: Date): Date | null {
  if (expiresAt === null) return null;
  const instant = new Date(expiresAt);
  if (instant > now) return instant;
  throw new SandboxError("invalid_argument", {
    reason: "already_expired",
    message: `no key was made: expiresAt ${expiresAt} has passed`,
    hint: "give an instant in the future, or null for a key that does not expire",
  });
}
