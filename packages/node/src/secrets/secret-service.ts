import { randomBytes } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import type {
  CreateSecretBody,
  SecretResource,
  SecretUse,
  SecretUsesBody,
  UpdateSecretBody,
} from "@sandpiper/protocol";
import { type SecretRecord, secretResource } from "./secret-record.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

const MAX_SECRETS = 256;
const PLACEHOLDER_BYTES = 12;

export interface SecretServiceOptions {
  /** Encrypts objects under `secrets/`. */
  readonly store: ObjectStore;
  /** Whether other nodes can change the secrets. */
  readonly isShared: boolean;
  readonly clock: Clock;
}

/** The secrets of tenants. Their values leave it only for requests to the hosts that they are bound to. */
export class SecretService {
  readonly #options: SecretServiceOptions;
  readonly #tenants = new Map<string, TenantSecrets>();

  constructor(options: SecretServiceOptions) {
    this.#options = options;
  }

  async create(tenant: string, body: CreateSecretBody): Promise<SecretResource> {
    const now = this.#now();
    const { name, value, hosts, inject = { replaceIn: ["header"] }, env = null, allowInsecure = false } = body;
    const secret: SecretRecord = { name, value, hosts, inject, env, allowInsecure, createdAt: now, rotatedAt: now };
    await this.of(tenant).change((secrets) => {
      if (secrets.some((each) => each.name === name)) throw exists(name);
      if (secrets.length >= MAX_SECRETS) throw tooMany();
      return [...secrets, secret];
    });
    return secretResource(secret);
  }

  async list(tenant: string): Promise<readonly SecretResource[]> {
    return (await this.of(tenant).read()).map(secretResource);
  }

  /** The next request of each sandbox that uses it has the new value; on other nodes, after at most a second. */
  async update(tenant: string, name: string, { value, ...fields }: UpdateSecretBody): Promise<SecretResource> {
    const rotated = value === undefined ? {} : { value, rotatedAt: this.#now() };
    let updated: SecretRecord | undefined;
    await this.of(tenant).change((secrets) => {
      const secret = secrets.find((each) => each.name === name);
      if (secret === undefined) throw noSuchSecret(name);
      const next = { ...secret, ...withoutUndefined(fields), ...rotated };
      updated = next;
      return secrets.map((each) => (each === secret ? next : each));
    });
    return secretResource(updated as SecretRecord);
  }

  /** Sandboxes that use it keep their placeholder, which is no longer replaced. */
  async remove(tenant: string, name: string): Promise<void> {
    await this.of(tenant).change((secrets) => {
      if (!secrets.some((each) => each.name === name)) throw noSuchSecret(name);
      return secrets.filter((each) => each.name !== name);
    });
  }

  /** Completes the secrets that a sandbox names. Placeholders that its code has seen stay as they are. */
  async uses(tenant: string, wanted: SecretUsesBody, before: readonly SecretUse[] = []): Promise<readonly SecretUse[]> {
    if (wanted.length === 0) return [];
    const secrets = await this.of(tenant).read();
    return wanted.map((use) => {
      const { name, env } = typeof use === "string" ? { name: use, env: undefined } : use;
      const secret = secrets.find((each) => each.name === name);
      if (secret === undefined) throw noSuchSecret(name);
      const placeholder = before.find((each) => each.name === name)?.placeholder ?? newPlaceholder();
      return { name, env: env === undefined ? secret.env : env, placeholder };
    });
  }

  of(tenant: string): TenantSecrets {
    const known = this.#tenants.get(tenant) ?? new TenantSecrets({ ...this.#options, tenant });
    this.#tenants.set(tenant, known);
    return known;
  }

  #now(): string {
    return this.#options.clock.now().toISOString();
  }
}

/** Letters and digits that no encoding of URLs changes. */
function newPlaceholder(): string {
  return `sandpiper-secret-${randomBytes(PLACEHOLDER_BYTES).toString("hex")}`;
}

function withoutUndefined(fields: Omit<UpdateSecretBody, "value">): Partial<SecretRecord> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function noSuchSecret(name: string): SandboxError {
  return new SandboxError("no_such_secret", {
    message: `there is no secret ${JSON.stringify(name.slice(0, 64))}`,
    details: { name: name.slice(0, 64) },
  });
}

function exists(name: string): SandboxError {
  return new SandboxError("secret_exists", {
    message: `there is already a secret ${JSON.stringify(name)}`,
    details: { name },
  });
}

function tooMany(): SandboxError {
  return new SandboxError("secret_limit", {
    message: `the tenant has ${MAX_SECRETS} secrets, as many as it may have`,
    details: { limit: MAX_SECRETS },
  });
}
