import { createHmac, timingSafeEqual } from "node:crypto";
import type { AuditEntry } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";

const PURPOSE = "audit chain";

/** An entry with its code, which depends on the entry and on the code of the previous one. */
export interface ChainedEntry extends AuditEntry {
  /** The code of the previous entry; empty for the first one. */
  readonly prev: string;
  readonly mac: string;
}

export type Verdict = "genuine" | "forged" | "unknown_key";

/** Signs audit entries. A code names its secret, so that entries stay verifiable while a secret is being replaced. */
export class AuditChain {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  sign(statement: readonly unknown[]): string {
    const id = this.#keyring.currentId;
    return this.#code(id, this.#keyring.key(PURPOSE) as Buffer, statement);
  }

  verify(mac: string, statement: readonly unknown[]): Verdict {
    const id = mac.slice(0, Math.max(0, mac.indexOf(".")));
    const key = this.#keyring.key(PURPOSE, { secretId: id });
    if (key === undefined) return "unknown_key";
    const [given, expected] = [Buffer.from(mac), Buffer.from(this.#code(id, key, statement))];
    return given.length === expected.length && timingSafeEqual(given, expected) ? "genuine" : "forged";
  }

  #code(id: string, key: Buffer, statement: readonly unknown[]): string {
    return `${id}.${createHmac("sha256", key).update(JSON.stringify(statement)).digest("base64url")}`;
  }
}

/** What the code of an entry covers. */
export function entryStatement(entry: AuditEntry, prev: string): readonly unknown[] {
  const { id, at, actor, tenant, operation, sandboxId, status, requestId, notRecorded } = entry;
  const counts = notRecorded === undefined ? null : [notRecorded.requests, notRecorded.addresses];
  return ["entry", id, prev, at, actor, tenant, operation, sandboxId, status, requestId, counts];
}

/** The newest entry; without this statement, the removal of the newest entries would go unnoticed. */
export function headStatement({ id, mac }: { readonly id: number; readonly mac: string }): readonly unknown[] {
  return ["head", id, mac];
}

/** Consecutive entries that the node removed to make room, and the code of the last one. */
export interface RotatedRange {
  readonly fromId: number;
  readonly toId: number;
  readonly mac: string;
}

export function rotatedStatement({ fromId, toId, mac }: RotatedRange): readonly unknown[] {
  return ["rotated", fromId, toId, mac];
}
