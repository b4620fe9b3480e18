import { createHash } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { SharedDocument } from "../cluster/shared-document.ts";
import { type SecretRecord, type SecretsDocument, secretsDocumentSchema } from "./secret-record.ts";

/** How old a cached document may be while other nodes can change it. */
const FRESH_MS = 1000;
const ID_CHARS = 32;

export interface TenantSecretsOptions {
  readonly tenant: string;
  /** Encrypts objects under `secrets/`. */
  readonly store: ObjectStore;
  /** Whether other nodes can change the secrets. */
  readonly isShared: boolean;
  readonly clock: Clock;
}

interface Version {
  readonly document: SecretsDocument | undefined;
  readonly tag: string | undefined;
  readonly checkedAtMs: number;
}

/** The secrets of one tenant: an encrypted object in the store, of which the node keeps a copy. */
export class TenantSecrets {
  readonly #options: TenantSecretsOptions;
  readonly #document: SharedDocument<SecretsDocument>;
  #version: Version | undefined;
  #newestRevision = 0;
  #reading: Promise<Version> | undefined;

  constructor(options: TenantSecretsOptions) {
    this.#options = options;
    const { store, tenant, clock } = options;
    // Names of tenants may contain characters that keys of objects must not.
    const id = createHash("sha256").update(tenant).digest("hex").slice(0, ID_CHARS);
    this.#document = new SharedDocument({ store, key: `secrets/${id}`, schema: secretsDocumentSchema, clock });
  }

  /** The copy, if it is as new as `read` would return; undefined otherwise. */
  get current(): readonly SecretRecord[] | undefined {
    const version = this.#version;
    if (version === undefined) return undefined;
    const { isShared, clock } = this.#options;
    const isFresh = !isShared || clock.monotonicMs() - version.checkedAtMs < FRESH_MS;
    return isFresh ? (version.document?.secrets ?? []) : undefined;
  }

  async read(): Promise<readonly SecretRecord[]> {
    const { current } = this;
    if (current !== undefined) return current;
    this.#reading ??= this.#refresh().finally(() => {
      this.#reading = undefined;
    });
    try {
      return (await this.#reading).document?.secrets ?? [];
    } catch (thrown) {
      // As for keys: what the node knows stays valid while the store cannot be read, or holds what no node wrote.
      if (this.#version === undefined) throw thrown;
      return this.#keep(this.#version.document, this.#version.tag).document?.secrets ?? [];
    }
  }

  async change(change: (secrets: readonly SecretRecord[]) => readonly SecretRecord[]): Promise<void> {
    const { tenant } = this.#options;
    const changed = await this.#document.change((before) => {
      this.#requireNewest(before);
      return { revision: (before?.revision ?? 0) + 1, tenant, secrets: [...change(before?.secrets ?? [])] };
    });
    if (changed !== undefined) this.#keep(changed.content, changed.tag);
  }

  async #refresh(): Promise<Version> {
    const known = this.#version;
    const tag = await this.#document.tag();
    if (known !== undefined && known.tag === tag) return this.#keep(known.document, tag);
    const found = tag === undefined ? undefined : await this.#document.read();
    this.#requireNewest(found?.content);
    return this.#keep(found?.content, found?.tag);
  }

  #keep(document: SecretsDocument | undefined, tag: string | undefined): Version {
    this.#newestRevision = Math.max(this.#newestRevision, document?.revision ?? 0);
    this.#version = { document, tag, checkedAtMs: this.#options.clock.monotonicMs() };
    return this.#version;
  }

  /** An older version may hold a value that was replaced because it leaked. */
  #requireNewest(document: SecretsDocument | undefined): void {
    if ((document?.revision ?? 0) >= this.#newestRevision) return;
    const { store, tenant } = this.#options;
    throw new SandboxError("object_replayed", {
      message: `the secrets of tenant ${JSON.stringify(tenant)} in ${store.label} are older than the version that this node has seen; this node ignores them`,
      details: { key: "secrets/", store: store.label },
    });
  }
}
