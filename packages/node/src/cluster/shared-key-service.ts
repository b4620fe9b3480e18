import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type ObjectStore, pause, SandboxError } from "@sandpiper/core";
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
import { apiKeyId, hashApiKey, keyResource } from "../auth/api-key.ts";
import {
  FIRST_KEY,
  hasUsableAdmin,
  type KeyVerifier,
  newKey,
  noSuchKey,
  updatedKey,
  updatedQuota,
  verifiedKey,
} from "../auth/new-key.ts";
import { writePrivateFile } from "../auth/private-file.ts";
import { type Account, hasDurableLimit, NO_QUOTA, type QuotaSource } from "../auth/quota.ts";
import { tenantsOf } from "../auth/tenants.ts";
import type { KeyRecord } from "../records/key-record.ts";
import { isRefusedObject } from "../store/signed-store.ts";
import { RememberedKeys } from "./remembered-keys.ts";
import { repeat } from "./repeat.ts";
import { type DocumentVersion, SharedDocument } from "./shared-document.ts";
import {
  type ClusterKeys,
  clusterKeysOf,
  documentOf,
  KEYS_OBJECT,
  type KeysDocument,
  keysDocumentSchema,
} from "./stored-keys.ts";

/** A key that is revoked on one node is refused by the others after this interval and a request to the store. */
const POLL_MS = 1000;
/** Limits how often guessed keys cause a request to the store. */
const MIN_LOOKUP_INTERVAL_MS = 200;

export interface SharedKeyServiceOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** For the file with the first key, and a copy of the newest keys. */
  readonly home: string;
  /** The node's keys and quotas from before it joined. They become the cluster's if it has none. */
  readonly own: ClusterKeys;
  readonly clock: Clock;
  /** Called once when the store becomes unreachable. Meanwhile the known keys stay valid. */
  readonly onError: (error: SandboxError) => void;
  /** Called before an account without limits on durable things gets one. */
  readonly beforeLimit?: ((account: Pick<Account, "kind" | "name">) => Promise<void>) | undefined;
}

type LimitListener = (account: Account) => void;

/** The keys of a cluster: an object in the store that every node can change and caches. */
export class SharedKeyService implements KeyVerifier, QuotaSource, Disposable {
  readonly #options: SharedKeyServiceOptions;
  readonly #document: SharedDocument<KeysDocument>;
  readonly #remembered: RememberedKeys;
  /** The newest version that this node has seen, also before a restart. */
  #newest: KeysDocument | undefined;
  #keys: ReadonlyMap<string, KeyRecord> = new Map();
  #tenants: ReadonlyMap<string, Quota> = new Map();
  readonly #limitListeners: LimitListener[] = [];
  #tag: string | undefined;
  /** Serializes requests to the store: a response that arrives late must not restore a revoked key. */
  #lastRequest: Promise<unknown> = Promise.resolve();
  #nextLookup: Promise<void> | undefined;
  #lookedUpAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #isDisposed = false;
  #stop = () => {};

  constructor(options: SharedKeyServiceOptions) {
    this.#options = options;
    const { store, clock } = options;
    this.#document = new SharedDocument({ store, key: KEYS_OBJECT, schema: keysDocumentSchema, clock });
    this.#remembered = new RememberedKeys(options);
  }

  /** Gives a new cluster this node's keys, creates an admin key if there is no valid one, and starts to poll the store. */
  async open(): Promise<void> {
    const { home, own, clock } = this.#options;
    const file = join(home, "api-key");
    let hasNewKey = false;
    this.#newest = this.#remembered.load();
    if (this.#newest !== undefined) await this.#refresh();
    await this.#change((stored) => {
      hasNewKey = false;
      const { keys, tenants } = stored ?? own;
      if (hasUsableAdmin(keys, clock.now())) return stored === undefined ? own : undefined;
      const { key, text } = this.#newKey(FIRST_KEY, keys);
      hasNewKey = true;
      // File first: a stored admin key without the file would lock out all callers.
      writePrivateFile(file, `${text}\n`);
      return { keys: [...keys, key], tenants };
    });
    if (!hasNewKey) this.#setAside(file);
    this.#stop = repeat(clock, POLL_MS, () => this.#poll());
  }

  async create(body: CreateKeyBody): Promise<CreatedKey> {
    let created: CreatedKey | undefined;
    await this.#changeKeys((keys) => {
      const { key, text } = this.#newKey(body, keys);
      created = { ...keyResource(key), key: text };
      return [...keys, key];
    });
    return created as CreatedKey;
  }

  /** Oldest first, including revoked keys. */
  async list(): Promise<readonly KeyResource[]> {
    await this.#refresh();
    return [...this.#keys.values()].map(keyResource);
  }

  /** Takes effect immediately on this node, and within about a second on the others. */
  async update(id: string, body: UpdateKeyBody): Promise<KeyResource> {
    const now = this.#options.clock.now();
    await this.#refresh();
    const before = this.keyQuota(id);
    await this.#prepareLimit({ kind: "key", name: id }, before, updatedQuota(before, body.quota));
    await this.#changeKeys((keys) => {
      const key = keys.find((each) => each.id === id);
      if (key === undefined) throw noSuchKey(id);
      const updated = updatedKey(key, body, now);
      return keys.map((each) => (each === key ? updated : each));
    });
    return keyResource(this.#keys.get(id) as KeyRecord);
  }

  async tenants(): Promise<readonly TenantResource[]> {
    await this.#refresh();
    return tenantsOf(this.#keys.values(), this.#tenants);
  }

  /** Takes effect immediately on this node, and within about a second on the others. */
  async updateTenant(name: string, { quota: changes }: UpdateTenantBody): Promise<TenantResource> {
    await this.#refresh();
    const before = this.tenantQuota(name);
    await this.#prepareLimit({ kind: "tenant", name }, before, updatedQuota(before, changes));
    await this.#change((stored) => {
      const { keys, tenants } = stored ?? { keys: [], tenants: new Map<string, Quota>() };
      const quota = updatedQuota(tenants.get(name) ?? NO_QUOTA, changes);
      return { keys, tenants: new Map([...tenants, [name, quota]]) };
    });
    return { name, quota: this.tenantQuota(name) };
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

  /** Calls the listener when a key or tenant gets its first limit on durable things: they were not counted until then. */
  onLimited(listener: LimitListener): void {
    this.#limitListeners.push(listener);
  }

  /** Takes effect immediately on this node, and within about a second on the others. */
  async revoke(id: string): Promise<KeyResource> {
    const now = this.#options.clock.now();
    await this.#changeKeys((keys) => {
      const key = keys.find((each) => each.id === id);
      if (key === undefined) throw noSuchKey(id);
      if (key.revokedAt !== null) return undefined;
      return keys.map((each) => (each === key ? { ...each, revokedAt: now } : each));
    });
    return keyResource(this.#keys.get(id) as KeyRecord);
  }

  verify(text: string): KeyRecord | undefined {
    return verifiedKey(this.#keys, text, this.#options.clock.now());
  }

  /** Looks up an unknown key in the store: another node may just have created it. */
  async learn(credential: string | undefined): Promise<void> {
    const id = apiKeyId(credential ?? "");
    if (id === undefined || this.#keys.has(id)) return;
    this.#nextLookup ??= this.#lookUp();
    // The poll reports keys that no node wrote; until they are replaced, the known keys count.
    await this.#nextLookup.catch((thrown) => {
      if (!isRefusedObject(thrown)) throw thrown;
    });
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#stop();
  }

  #newKey(body: CreateKeyBody, keys: readonly KeyRecord[]) {
    const isTaken = (id: string) => keys.some((key) => key.id === id);
    return newKey(body, { now: this.#options.clock.now(), isTaken });
  }

  #changeKeys(change: (keys: readonly KeyRecord[]) => readonly KeyRecord[] | undefined): Promise<void> {
    return this.#change((stored) => {
      const keys = change(stored?.keys ?? []);
      return keys && { keys, tenants: stored?.tenants ?? new Map() };
    });
  }

  #change(change: (stored: ClusterKeys | undefined) => ClusterKeys | undefined): Promise<void> {
    const write = async () => {
      const changed = await this.#document.change((content) => {
        this.#requireNewest(content);
        const next = change(content && clusterKeysOf(content));
        return next && documentOf(next, { revision: (content?.revision ?? 0) + 1 });
      });
      if (changed !== undefined) this.#update(changed);
    };
    return this.#serialize(async () => {
      try {
        await write();
      } catch (thrown) {
        if (!isRefusedObject(thrown)) throw thrown;
        await this.#readNewest();
        await write();
      }
    });
  }

  #refresh(): Promise<void> {
    return this.#serialize(() => this.#readNewest());
  }

  /** Reads the keys if they have changed. Puts the newest known version back in place of a forged, older or missing one. */
  async #readNewest(): Promise<void> {
    try {
      const tag = await this.#document.tag();
      if (tag !== undefined && tag === this.#tag) return;
      const version = await this.#document.read();
      if (version === undefined) throw missingKeys(this.#options.store);
      this.#requireNewest(version.content, version.tag);
      this.#update(version);
    } catch (thrown) {
      if (!isRefusedObject(thrown) || this.#newest === undefined) throw thrown;
      const replaced = await this.#document.replace(thrown.details["tag"] as string | undefined, this.#newest);
      if (replaced === undefined) throw thrown;
      this.#options.onError(thrown);
      this.#update(replaced);
    }
  }

  /** An older version may hold keys that have been revoked since. */
  #requireNewest(content: KeysDocument | undefined, tag?: string): void {
    if ((content?.revision ?? 0) >= (this.#newest?.revision ?? 0)) return;
    const store = this.#options.store.label;
    throw new SandboxError("object_replayed", {
      message: `${KEYS_OBJECT} in ${store} is older than the version that this node has seen; this node ignores it`,
      details: { key: KEYS_OBJECT, store, ...(tag !== undefined && { tag }) },
    });
  }

  #serialize(work: () => Promise<void>): Promise<void> {
    const done = this.#lastRequest.then(work);
    this.#lastRequest = done.catch(() => {});
    return done;
  }

  #update({ content, tag }: DocumentVersion<KeysDocument>): void {
    const { keys, tenants } = clusterKeysOf(content);
    const [keysBefore, tenantsBefore, isFirst] = [this.#keys, this.#tenants, this.#tag === undefined];
    this.#keys = new Map(keys.map((key) => [key.id, key]));
    this.#tenants = tenants;
    this.#tag = tag;
    const isNew = content.revision !== this.#newest?.revision;
    this.#newest = content;
    try {
      if (isNew) this.#remembered.save(content);
    } catch (thrown) {
      this.#options.onError(SandboxError.from(thrown));
    }
    // What the first version limits was counted by the previous process.
    if (isFirst) return;
    for (const [name, { quota }] of this.#keys) {
      this.#announceLimit({ kind: "key", name, quota }, keysBefore.get(name)?.quota);
    }
    for (const [name, quota] of tenants) this.#announceLimit({ kind: "tenant", name, quota }, tenantsBefore.get(name));
  }

  #announceLimit(account: Account, before: Quota = NO_QUOTA): void {
    if (hasDurableLimit(before) || !hasDurableLimit(account.quota)) return;
    for (const listener of this.#limitListeners) listener(account);
  }

  async #prepareLimit(account: Pick<Account, "kind" | "name">, before: Quota, after: Quota): Promise<void> {
    if (!hasDurableLimit(before) && hasDurableLimit(after)) await this.#options.beforeLimit?.(account);
  }

  async #lookUp(): Promise<void> {
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#lookedUpAtMs + MIN_LOOKUP_INTERVAL_MS - clock.monotonicMs());
    if (waitMs > 0) await pause(clock, waitMs);
    else await undefined;
    // A later caller's key may be newer than the lookup that starts now.
    this.#nextLookup = undefined;
    this.#lookedUpAtMs = clock.monotonicMs();
    await this.#refresh();
  }

  async #poll(): Promise<void> {
    try {
      await this.#refresh();
      this.#isFailing = false;
    } catch (thrown) {
      if (!this.#isFailing && !this.#isDisposed) this.#options.onError(SandboxError.from(thrown));
      this.#isFailing = true;
    }
  }

  /** Renames the file if it holds a key from before the node joined: that key is not valid in the cluster. */
  #setAside(file: string): void {
    if (!existsSync(file)) return;
    const text = readFileSync(file, "utf8").trim();
    const known = this.#keys.get(apiKeyId(text) ?? "");
    if (known !== undefined && hashApiKey(text).equals(known.hash)) return;
    rmSync(`${file}.alone`, { force: true });
    renameSync(file, `${file}.alone`);
  }
}

function missingKeys({ label }: ObjectStore): SandboxError {
  return new SandboxError("object_damaged", {
    message: `${KEYS_OBJECT} is missing in ${label}; the keys that this node knows stay valid`,
    hint: "restore it from a backup of the store; a node that starts without it creates new keys",
    details: { store: label, key: KEYS_OBJECT },
  });
}
