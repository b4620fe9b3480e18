import { createHash } from "node:crypto";
import type { KeyResource } from "@sandpiper/protocol";
import type { KeyRecord } from "../records/key-record.ts";

const API_KEY = /^spk_([0-9a-f]{8})_[A-Za-z0-9_-]{43}$/;

export function apiKeyText(id: string, secret: Uint8Array): string {
  return `spk_${id}_${Buffer.from(secret).toString("base64url")}`;
}

/** The public part of a key; undefined if the text does not have the form of a key. */
export function apiKeyId(text: string): string | undefined {
  return API_KEY.exec(text)?.[1];
}

/** Keys are random over their whole length, so a slow hash would add no protection. */
export function hashApiKey(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

export function isUsable({ expiresAt, revokedAt }: KeyRecord, now: Date): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now);
}

export function keyResource(key: KeyRecord): KeyResource {
  return {
    id: key.id,
    name: key.name,
    tenant: key.tenant,
    scopes: [...key.scopes],
    expiresAt: key.expiresAt?.toISOString() ?? null,
    quota: key.quota,
    maxNetwork: key.maxNetwork,
    createdAt: key.createdAt.toISOString(),
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}
