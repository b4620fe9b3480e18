import { type Clock, systemClock } from "@sandpiper/core";
import { SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "./database.ts";

/** Longer than clients retry a request. */
const KEY_LIFE_MS = 24 * 3_600_000;

const FIND = `SELECT fingerprint, sandboxId FROM idempotencyKeys
  WHERE tenant = :tenant AND key = :key AND usedAt > :oldest`;
const ADD = `INSERT OR REPLACE INTO idempotencyKeys (tenant, key, fingerprint, sandboxId, usedAt)
  VALUES (:tenant, :key, :fingerprint, :sandboxId, :usedAt)`;

export interface IdempotentRequest {
  readonly tenant: string;
  readonly key: string;
  /** Equal for equal requests. */
  readonly fingerprint: string;
}

/** Remembers which request created which sandbox. */
export class SqliteIdempotencyRecords {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;

  constructor(database: NodeDatabase, { clock = systemClock }: { readonly clock?: Clock | undefined } = {}) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Throws `conflict` (reason `idempotency_key_reused`) if the key was used with another fingerprint. */
  find({ tenant, key, fingerprint }: IdempotentRequest): SandboxId | undefined {
    const oldest = this.#clock.now().getTime() - KEY_LIFE_MS;
    const first = this.#database.prepare(FIND).get({ tenant, key, oldest });
    if (first === undefined) return undefined;
    if (first["fingerprint"] === fingerprint) return first["sandboxId"] as SandboxId;
    throw idempotencyKeyReused(key);
  }

  /** For a request that failed, so that a retry runs again. */
  remove({ tenant, key }: IdempotentRequest): void {
    this.#database.prepare("DELETE FROM idempotencyKeys WHERE tenant = :tenant AND key = :key").run({ tenant, key });
  }

  add({ tenant, key, fingerprint }: IdempotentRequest, id: SandboxId): void {
    const usedAt = this.#clock.now().getTime();
    this.#database.transaction(() => {
      this.#database
        .prepare("DELETE FROM idempotencyKeys WHERE usedAt <= :oldest")
        .run({ oldest: usedAt - KEY_LIFE_MS });
      this.#database.prepare(ADD).run({ tenant, key, fingerprint, sandboxId: id, usedAt });
    });
  }
}

export function idempotencyKeyReused(key: string): SandboxError {
  return new SandboxError("idempotency_key_reused", {
    message: `the idempotency key ${JSON.stringify(key)} was already used with a different request`,
  });
}
