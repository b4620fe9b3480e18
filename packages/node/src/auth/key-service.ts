import { join } from "node:path";
import { type Clock, systemClock } from "@sandpiper/core";
import type {
  CreatedKey,
  CreateKeyBody,
  KeyResource,
  NetworkPolicy,
  Quota,
  TenantResource,
  UpdateKeyBody,
  UpdateTenantBody,
} from "@sandpiper/protocol";
import type { NodeDatabase } from "../records/database.ts";
import type { KeyRecord } from "../records/key-record.ts";
import { SqliteKeyRecords } from "../records/sqlite-key-records.ts";
import { keyResource } from "./api-key.ts";
import {
  FIRST_KEY,
  hasUsableAdmin,
  type KeyVerifier,
  newKey,
  noSuchKey,
  type Randomness,
  updatedKey,
  updatedQuota,
  verifiedKey,
} from "./new-key.ts";
import { writePrivateFile } from "./private-file.ts";
import { NO_QUOTA, type QuotaSource } from "./quota.ts";
import { tenantsOf } from "./tenants.ts";

export interface KeyServiceOptions {
  readonly clock?: Clock | undefined;
  readonly randomBytes?: Randomness | undefined;
}

/** The node's API keys. It caches all of them in memory, because it is their only writer and every request looks one up. */
export class KeyService implements KeyVerifier, QuotaSource {
  readonly #records: SqliteKeyRecords;
  readonly #clock: Clock;
  readonly #randomBytes: Randomness | undefined;
  readonly #keys: Map<string, KeyRecord>;
  readonly #tenants: Map<string, Quota>;

  constructor(database: NodeDatabase, options: KeyServiceOptions = {}) {
    this.#records = new SqliteKeyRecords(database);
    this.#clock = options.clock ?? systemClock;
    this.#randomBytes = options.randomBytes;
    this.#keys = new Map(this.#records.list().map((key) => [key.id, key]));
    this.#tenants = new Map(this.#records.tenantQuotas());
  }

  create(body: CreateKeyBody): CreatedKey {
    const { key, text } = this.#newKey(body);
    return this.#add(key, text);
  }

  /** Oldest first, including revoked keys. */
  list(): readonly KeyResource[] {
    return [...this.#keys.values()].map(keyResource);
  }

  /** Takes effect immediately. */
  update(id: string, body: UpdateKeyBody): KeyResource {
    const key = this.#keys.get(id);
    if (key === undefined) throw noSuchKey(id);
    const updated = updatedKey(key, body, this.#clock.now());
    this.#records.update(updated);
    this.#keys.set(id, updated);
    return keyResource(updated);
  }

  keyQuota(keyId: string): Quota {
    return this.#keys.get(keyId)?.quota ?? NO_QUOTA;
  }

  maxNetwork(keyId: string): NetworkPolicy | null {
    return this.#keys.get(keyId)?.maxNetwork ?? null;
  }

  tenantQuota(tenant: string): Quota {
    return this.#tenants.get(tenant) ?? NO_QUOTA;
  }

  tenants(): readonly TenantResource[] {
    return tenantsOf(this.#keys.values(), this.#tenants);
  }

  /** Takes effect immediately. */
  updateTenant(name: string, { quota: changes }: UpdateTenantBody): TenantResource {
    const quota = updatedQuota(this.tenantQuota(name), changes);
    this.#records.setTenantQuota(name, quota);
    this.#tenants.set(name, quota);
    return { name, quota };
  }

  /** Takes effect immediately. */
  revoke(id: string): KeyResource {
    const key = this.#keys.get(id);
    if (key === undefined) throw noSuchKey(id);
    const revoked = { ...key, revokedAt: key.revokedAt ?? this.#clock.now() };
    this.#records.setRevoked(id, revoked.revokedAt);
    this.#keys.set(id, revoked);
    return keyResource(revoked);
  }

  /**
   * Creates an admin key and writes it to `api-key` in the node's home if no valid admin key exists, as at the first start.
   * Undefined if one exists.
   */
  firstKey(home: string): CreatedKey | undefined {
    if (hasUsableAdmin(this.#keys.values(), this.#clock.now())) return undefined;
    const { key, text } = this.#newKey(FIRST_KEY);
    // File first: the next start replaces a key without a record, but a record without the file would lock out the owner.
    writePrivateFile(join(home, "api-key"), `${text}\n`);
    return this.#add(key, text);
  }

  verify(text: string): KeyRecord | undefined {
    return verifiedKey(this.#keys, text, this.#clock.now());
  }

  #newKey(body: CreateKeyBody) {
    const randomBytes = this.#randomBytes;
    return newKey(body, { now: this.#clock.now(), randomBytes, isTaken: (id) => this.#keys.has(id) });
  }

  #add(key: KeyRecord, text: string): CreatedKey {
    this.#records.add(key);
    this.#keys.set(key.id, key);
    return { ...keyResource(key), key: text };
  }
}
