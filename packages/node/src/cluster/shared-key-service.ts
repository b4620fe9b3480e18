import { randomBytes as cryptoRandomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import type { CreatedKey, CreateKeyBody, KeyResource } from "@sandpiper/protocol";
import { apiKeyId, hashApiKey, keyResource } from "../auth/api-key.ts";
import {
  FIRST_KEY,
  hasUsableAdmin,
  type KeyVerifier,
  newKey,
  noSuchKey,
  type Randomness,
  verifiedKey,
} from "../auth/new-key.ts";
import { writePrivateFile } from "../auth/private-file.ts";
import type { KeyRecord } from "../records/key-record.ts";
import { type DocumentVersion, SharedDocument } from "./shared-document.ts";
import { type KeysDocument, keysDocumentSchema, recordsOfDocument, storedKey } from "./stored-keys.ts";

const KEYS_OBJECT = "keys.json";
/** A key that is revoked on one node ends on the others within this, and what it takes to ask the store. */
const POLL_MS = 1000;
/** Whoever guesses keys asks the store no more often than this. */
const MIN_GAP_MS = 200;

export interface SharedKeyServiceOptions {
  readonly store: ObjectStore;
  /** The node's directory, for the file with the first key. */
  readonly home: string;
  /** Those the node has of its own. They become the cluster's if it has none. */
  readonly own: readonly KeyRecord[];
  readonly clock: Clock;
  readonly randomBytes?: Randomness | undefined;
  /** Told once when the store cannot be asked, until it can again. What is known goes on being believed. */
  readonly onError: (error: SandboxError) => void;
}

/** The keys of a cluster: one object of the store that every node may change, and that each keeps a copy of. */
export class SharedKeyService implements KeyVerifier, Disposable {
  readonly #options: SharedKeyServiceOptions;
  readonly #document: SharedDocument<KeysDocument>;
  readonly #randomBytes: Randomness;
  #keys: ReadonlyMap<string, KeyRecord> = new Map();
  #tag: string | undefined;
  /** One after the other: an answer that is overtaken must not bring back what is revoked. */
  #turn: Promise<unknown> = Promise.resolve();
  #nextLook: Promise<void> | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #stop = () => {};

  constructor(options: SharedKeyServiceOptions) {
    this.#options = options;
    const { store, clock } = options;
    this.#document = new SharedDocument({ store, key: KEYS_OBJECT, schema: keysDocumentSchema, clock });
    this.#randomBytes = options.randomBytes ?? cryptoRandomBytes;
  }

  /** Makes the cluster's keys of the node's own where there are none, makes sure that somebody can get in, and follows. */
  async open(): Promise<void> {
    const { home, own, clock } = this.#options;
    const file = join(home, "api-key");
    let made: KeyRecord | undefined;
    await this.#change((now) => {
      made = undefined;
      const keys = now ?? own;
      if (hasUsableAdmin(keys, clock.now())) return now === undefined ? keys : undefined;
      const first = this.#make(FIRST_KEY, keys);
      made = first.key;
      // On disk first: a key that nobody has would lock everybody out.
      writePrivateFile(file, `${first.text}\n`);
      return [...keys, first.key];
    });
    if (made === undefined) this.#putAside(file);
    this.#follow();
  }

  async create(body: CreateKeyBody): Promise<CreatedKey> {
    let created: CreatedKey | undefined;
    await this.#change((now = []) => {
      const { key, text } = this.#make(body, now);
      created = { ...keyResource(key), key: text };
      return [...now, key];
    });
    return created as CreatedKey;
  }

  /** In the order of their making, revoked ones too. */
  async list(): Promise<readonly KeyResource[]> {
    await this.#refresh();
    return [...this.#keys.values()].map(keyResource);
  }

  /** From now on nobody gets in with it here, and within about a second nowhere. */
  async revoke(id: string): Promise<KeyResource> {
    const now = this.#options.clock.now();
    await this.#change((keys = []) => {
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

  hasQuota(id: string): boolean {
    return Object.values(this.#keys.get(id)?.quota ?? {}).some((limit) => limit !== null);
  }

  /** Asks the store about a key that is not known here: it may have been made elsewhere a moment ago. */
  async learn(credential: string | undefined): Promise<void> {
    const id = apiKeyId(credential ?? "");
    if (id === undefined || this.#keys.has(id)) return;
    this.#nextLook ??= this.#look();
    await this.#nextLook;
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#stop = () => {};
  }

  #make(body: CreateKeyBody, keys: readonly KeyRecord[]) {
    const isTaken = (id: string) => keys.some((key) => key.id === id);
    return newKey(body, { now: this.#options.clock.now(), randomBytes: this.#randomBytes, isTaken });
  }

  #change(change: (now: readonly KeyRecord[] | undefined) => readonly KeyRecord[] | undefined): Promise<void> {
    return this.#inTurn(async () => {
      const changed = await this.#document.change((now) => {
        const keys = change(now && recordsOfDocument(now));
        return keys && { keys: keys.map(storedKey) };
      });
      if (changed !== undefined) this.#believe(changed);
    });
  }

  #refresh(): Promise<void> {
    return this.#inTurn(async () => {
      const tag = await this.#document.tag();
      if (tag !== undefined && tag === this.#tag) return;
      const read = await this.#document.read();
      if (read === undefined) throw gone(this.#options.store);
      this.#believe(read);
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  #believe({ content, tag }: DocumentVersion<KeysDocument>): void {
    this.#keys = new Map(recordsOfDocument(content).map((key) => [key.id, key]));
    this.#tag = tag;
  }

  async #look(): Promise<void> {
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#lookedAtMs + MIN_GAP_MS - clock.monotonicMs());
    if (waitMs > 0) await new Promise<void>((resolve) => void clock.schedule(waitMs, resolve));
    else await undefined;
    // A look that has begun is too old for those who come from now on.
    this.#nextLook = undefined;
    this.#lookedAtMs = clock.monotonicMs();
    await this.#refresh();
  }

  #follow(): void {
    const { clock, onError } = this.#options;
    let isStopped = false;
    const next = () => {
      const cancel = clock.schedule(POLL_MS, async () => {
        try {
          await this.#refresh();
          this.#isFailing = false;
        } catch (thrown) {
          if (!this.#isFailing && !isStopped) onError(SandboxError.from(thrown));
          this.#isFailing = true;
        }
        if (!isStopped) next();
      });
      this.#stop = () => {
        isStopped = true;
        cancel();
      };
    };
    next();
  }

  /** A key from before the node came into the cluster opens nothing here; in its place it would mislead. */
  #putAside(file: string): void {
    if (!existsSync(file)) return;
    const text = readFileSync(file, "utf8").trim();
    const known = this.#keys.get(apiKeyId(text) ?? "");
    if (known !== undefined && hashApiKey(text).equals(known.hash)) return;
    rmSync(`${file}.alone`, { force: true });
    renameSync(file, `${file}.alone`);
  }
}

function gone({ label }: ObjectStore): SandboxError {
  return new SandboxError("data_loss", {
    reason: "store_corrupt",
    message: `${KEYS_OBJECT} is not in ${label} any more; the keys that are known go on being valid`,
    hint: "restore it from a backup of the store; a node that is started without it makes the keys anew",
    details: { store: label, key: KEYS_OBJECT },
  });
}
