import { type ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import { isUnprotected } from "./earlier-format.ts";
import { notRewritten, rewriteManifest } from "./rewrite-manifest.ts";
import { secretIdOf } from "./sealed-bytes.ts";
import { openObject, sealObject } from "./sealed-objects.ts";

/** Bounds the length of the report about damaged objects. */
const MAX_REPORTED = 20;

/** The tenant in a state, as a standalone node and as a node of a cluster write it. */
const ownerSchema = z.object({ record: z.object({ tenant: z.string() }) });
const stateSchema = z.union([ownerSchema, z.object({ content: ownerSchema }).transform(({ content }) => content)]);

export interface RewriteDataOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  /** Encrypts what an earlier version stored in clear text, once. An attacker can forge such data, so it is refused otherwise. */
  readonly acceptUnprotected: boolean;
  /** Called after each object and chunk. */
  readonly onProgress?: ((progress: RewriteProgress) => void) | undefined;
}

/** What was rewritten so far. */
export interface RewriteProgress {
  readonly objects: number;
  readonly chunks: number;
  readonly bytes: number;
}

/**
 * Encrypts states, secrets of tenants and checkpoints with the current secret: those of earlier versions, and those under a replaced secret. Nodes may
 * use the store meanwhile if all of them write with the current secret. It can be interrupted and repeated. Damaged objects do not
 * stop it: it throws at the end. Resolves to the number of rewritten objects.
 */
export async function rewriteData(options: RewriteDataOptions): Promise<number> {
  const rewriter = new DataRewriter(options);
  // A node may copy a manifest while it is rewritten, so passes are repeated until one finds nothing to do.
  while ((await rewriter.pass()) > 0);
  rewriter.requireSound();
  return rewriter.progress.objects;
}

class DataRewriter {
  readonly #options: RewriteDataOptions;
  readonly #damaged = new Map<string, SandboxError>();
  progress: RewriteProgress = { objects: 0, chunks: 0, bytes: 0 };

  constructor(options: RewriteDataOptions) {
    this.#options = options;
  }

  /** Resolves to the number of objects that this pass rewrote. */
  async pass(): Promise<number> {
    const { store, keyring, acceptUnprotected } = this.#options;
    const before = this.progress.objects;
    const onChunks = (chunks: number, bytes: number) => this.#add({ objects: 0, chunks, bytes });
    const tenantOf = acceptUnprotected ? (id: SandboxId) => this.#tenantOf(id) : undefined;
    await this.#each("checkpoints/", (key) => rewriteManifest(key, { store, keyring, tenantOf, onChunks }));
    for (const prefix of ["states/", "secrets/"]) await this.#each(prefix, (key) => this.#rewriteSealed(key));
    return this.progress.objects - before;
  }

  requireSound(): void {
    const [first] = this.#damaged.values();
    if (first === undefined) return;
    if (this.#damaged.size === 1) throw first;
    const keys = [...this.#damaged.keys()];
    throw new SandboxError("object_damaged", {
      message: `cannot encrypt ${keys.length} objects in the store ${this.#options.store.label} with the current secret: ${keys.slice(0, MAX_REPORTED).join(", ")}${keys.length > MAX_REPORTED ? ", …" : ""}; all others are encrypted`,
      hint: first.hint,
      details: { key: keys[0], store: this.#options.store.label },
      cause: first,
    });
  }

  async #each(prefix: string, rewrite: (key: string) => Promise<boolean>): Promise<void> {
    for await (const { key } of this.#options.store.list(prefix)) {
      if (this.#damaged.has(key)) continue;
      try {
        if (await rewrite(key)) this.#add({ objects: 1, chunks: 0, bytes: 0 });
      } catch (thrown) {
        if (!(thrown instanceof SandboxError) || thrown.reason !== "object_damaged") throw thrown;
        this.#damaged.set(key, thrown);
      }
    }
  }

  /** A node that writes the object meanwhile has encrypted it with the current secret. */
  async #rewriteSealed(key: string): Promise<boolean> {
    const { store, keyring } = this.#options;
    for (;;) {
      const stored = await store.get(key);
      if (stored === undefined || secretIdOf(stored.bytes) === keyring.currentId) return false;
      const sealed = sealObject(keyring, key, this.#openState(key, stored.bytes));
      if ((await store.put(key, sealed, { ifMatch: stored.tag })) !== undefined) return true;
    }
  }

  /** Undefined for a sandbox that does not exist, or that no node has committed. */
  async #tenantOf(sandbox: SandboxId): Promise<string | undefined> {
    const key = `states/${sandbox}.state`;
    const stored = await this.#options.store.get(key);
    if (stored === undefined) return undefined;
    try {
      const content = JSON.parse(Buffer.from(this.#openState(key, stored.bytes)).toString());
      return stateSchema.safeParse(content).data?.record.tenant;
    } catch (thrown) {
      throw notRewritten(key, this.#options.store, thrown instanceof Error ? thrown.message : String(thrown));
    }
  }

  #openState(key: string, bytes: Uint8Array): Uint8Array {
    if (isUnprotected(bytes) && this.#options.acceptUnprotected) return bytes;
    const opened = openObject(this.#options.keyring, key, bytes);
    if ("fault" in opened) throw notRewritten(key, this.#options.store, opened.fault);
    return opened.content;
  }

  #add({ objects, chunks, bytes }: RewriteProgress): void {
    const before = this.progress;
    this.progress = {
      objects: before.objects + objects,
      chunks: before.chunks + chunks,
      bytes: before.bytes + bytes,
    };
    this.#options.onProgress?.(this.progress);
  }
}
