import { randomBytes as cryptoRandomBytes, timingSafeEqual } from "node:crypto";
import {
  type CreateKeyBody,
  completeNetwork,
  completeQuota,
  type NetworkBody,
  type NetworkPolicy,
  type Quota,
  type QuotaChanges,
  SandboxError,
  type UpdateKeyBody,
} from "@sandpiper/protocol";
import type { KeyRecord } from "../records/key-record.ts";
import { apiKeyId, apiKeyText, hashApiKey, isUsable } from "./api-key.ts";

const ID_BYTES = 4;
const SECRET_BYTES = 32;

/** Compared for an unknown id, so that it takes as long as a known one. No key has this hash. */
const noHash = Buffer.alloc(32);

export type Randomness = (size: number) => Uint8Array;

export interface KeyVerifier {
  /** Undefined for a malformed, unknown, expired or revoked key, in the same time for all. */
  verify(text: string): KeyRecord | undefined;
}

/** The key that a node creates for its owner at the first start. */
export const FIRST_KEY = { name: "first", tenant: "default", scopes: ["admin"] } satisfies CreateKeyBody;

export interface NewKeyOptions {
  readonly now: Date;
  readonly randomBytes?: Randomness | undefined;
  readonly isTaken: (id: string) => boolean;
}

/** A key with its defaults, and its text, which is not stored. */
export function newKey(
  body: CreateKeyBody,
  options: NewKeyOptions,
): { readonly key: KeyRecord; readonly text: string } {
  const { now, randomBytes = cryptoRandomBytes } = options;
  const id = freeId(options);
  const text = apiKeyText(id, randomBytes(SECRET_BYTES));
  const key: KeyRecord = {
    id,
    hash: hashApiKey(text),
    name: body.name,
    tenant: body.tenant ?? "default",
    scopes: [...new Set(body.scopes ?? ["sandboxes" as const])],
    quota: completeQuota(body.quota),
    maxNetwork: networkLimit(body.maxNetwork ?? null),
    createdAt: now,
    expiresAt: parseExpiry(body.expiresAt ?? null, now),
    revokedAt: null,
  };
  return { key, text };
}

/** Throws if the key is revoked, or the new expiry has passed. */
export function updatedKey(
  key: KeyRecord,
  { name, expiresAt, quota, maxNetwork }: UpdateKeyBody,
  now: Date,
): KeyRecord {
  if (key.revokedAt !== null) throw keyRevoked(key.id);
  return {
    ...key,
    name: name ?? key.name,
    expiresAt: expiresAt === undefined ? key.expiresAt : parseExpiry(expiresAt, now),
    quota: updatedQuota(key.quota, quota),
    maxNetwork: maxNetwork === undefined ? key.maxNetwork : networkLimit(maxNetwork),
  };
}

function networkLimit(body: NetworkBody | null): NetworkPolicy | null {
  return body === null ? null : completeNetwork(body);
}

/** Omitted limits stay; null removes one. */
export function updatedQuota(quota: Quota, changes: QuotaChanges = {}): Quota {
  const given = Object.entries(changes).filter(([, limit]) => limit !== undefined);
  return { ...quota, ...Object.fromEntries(given) };
}

export function verifiedKey(keys: ReadonlyMap<string, KeyRecord>, text: string, now: Date): KeyRecord | undefined {
  const key = keys.get(apiKeyId(text) ?? "");
  const isMatch = timingSafeEqual(hashApiKey(text), key?.hash ?? noHash);
  return key !== undefined && isMatch && isUsable(key, now) ? key : undefined;
}

export function hasUsableAdmin(keys: Iterable<KeyRecord>, now: Date): boolean {
  for (const key of keys) if (key.scopes.includes("admin") && isUsable(key, now)) return true;
  return false;
}

export function noSuchKey(id: string): SandboxError {
  return new SandboxError("no_such_key", { message: `there is no key ${JSON.stringify(id)}` });
}

function keyRevoked(id: string): SandboxError {
  return new SandboxError("key_revoked", {
    message: `cannot update the key ${id}: it is revoked`,
    details: { key: id },
  });
}

function freeId({ randomBytes = cryptoRandomBytes, isTaken }: NewKeyOptions): string {
  for (;;) {
    const id = Buffer.from(randomBytes(ID_BYTES)).toString("hex");
    if (!isTaken(id)) return id;
  }
}

function parseExpiry(expiresAt: string | null, now: Date): Date | null {
  if (expiresAt === null) return null;
  const instant = new Date(expiresAt);
  if (instant > now) return instant;
  throw new SandboxError("already_expired", {
    message: `the key's expiresAt ${expiresAt} is in the past`,
  });
}
