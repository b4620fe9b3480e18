import { createHmac, hkdfSync } from "node:crypto";

const KEY_BYTES = 32;
const ID_CHARACTERS = 8;

export interface KeyringOptions {
  /** The first one protects new data. The others only verify and decrypt, while a secret is being replaced. */
  readonly secrets: readonly [string | Uint8Array, ...(string | Uint8Array)[]];
  /** The id of the cluster, or of a standalone node: equal secrets of two clusters yield different keys. */
  readonly salt: string;
}

export interface KeyOptions {
  /** A key of one tenant; without it, a key that all tenants share. */
  readonly tenant?: string | undefined;
  /** The id of the secret; the current one by default. */
  readonly secretId?: string | undefined;
}

/** Derives keys from the secrets of a cluster or node: one per purpose and tenant, so that no key reveals another. */
export class Keyring {
  /** Identifies the current secret in stored data without revealing it. */
  readonly currentId: string;
  readonly #salt: string;
  readonly #secrets = new Map<string, string | Uint8Array>();
  readonly #keys = new Map<string, Buffer>();

  constructor({ secrets, salt }: KeyringOptions) {
    this.#salt = salt;
    for (const secret of secrets) this.#secrets.set(this.#idOf(secret), secret);
    this.currentId = this.#idOf(secrets[0]);
  }

  /** The ids of all secrets, the current one first. */
  get ids(): readonly string[] {
    return [...this.#secrets.keys()];
  }

  /** Undefined if the keyring does not hold the secret. */
  key(purpose: string, { tenant, secretId = this.currentId }: KeyOptions = {}): Buffer | undefined {
    const secret = this.#secrets.get(secretId);
    if (secret === undefined) return undefined;
    // JSON keeps a purpose apart from a tenant that contains the separator.
    const info = JSON.stringify(["sandpiper", purpose, tenant ?? null]);
    const cacheKey = `${secretId} ${info}`;
    const key = this.#keys.get(cacheKey) ?? this.#derive(secret, info);
    this.#keys.set(cacheKey, key);
    return key;
  }

  /** The keys of all secrets for a purpose, the current one first. */
  keys(purpose: string): readonly [Buffer, ...Buffer[]] {
    return this.ids.map((secretId) => this.key(purpose, { secretId }) as Buffer) as [Buffer, ...Buffer[]];
  }

  #idOf(secret: string | Uint8Array): string {
    return createHmac("sha256", this.#derive(secret, "sandpiper secret id")).digest("hex").slice(0, ID_CHARACTERS);
  }

  #derive(secret: string | Uint8Array, info: string): Buffer {
    return Buffer.from(hkdfSync("sha256", secret, this.#salt, info, KEY_BYTES));
  }
}
