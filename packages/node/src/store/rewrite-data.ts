import { type ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { z } from "zod";
import type { Keyring } from "../auth/keyring.ts";
import type { CheckpointFile } from "./checkpoint-files.ts";
import { type Manifest, openManifest, sealManifest } from "./checkpoint-manifest.ts";
import { chunksIn } from "./chunked-files.ts";
import { decodeEarlierChunk, isUnprotected, parseEarlierManifest } from "./earlier-format.ts";
import { forEachParallel } from "./for-each-parallel.ts";
import { openObject, sealObject } from "./sealed-objects.ts";
import { TenantChunks } from "./tenant-chunks.ts";

const PARALLEL = 4;
const STATE = /^states\/(.+)\.state$/;

/** The tenant in a state, as a standalone node and as a node of a cluster write it. */
const ownerSchema = z.object({ record: z.object({ tenant: z.string() }) });
const stateSchema = z.union([ownerSchema, z.object({ content: ownerSchema }).transform(({ content }) => content)]);

export interface RewriteDataOptions {
  readonly store: ObjectStore;
  readonly keyring: Keyring;
  /** Encrypts what an earlier version stored in clear text, once. An attacker can forge such data, so it is refused otherwise. */
  readonly acceptUnprotected: boolean;
}

/**
 * Encrypts states and checkpoints with the current secret: those of earlier versions, and those under a replaced secret. No node
 * may use the store meanwhile. It can be interrupted and repeated. Resolves to the number of rewritten objects.
 */
export async function rewriteData(options: RewriteDataOptions): Promise<number> {
  const rewriter = new DataRewriter(options);
  for await (const { key } of options.store.list("states/")) {
    const sandbox = STATE.exec(key)?.[1];
    if (sandbox !== undefined) await rewriter.rewriteSandbox(key, sandbox as SandboxId);
  }
  return rewriter.count;
}

class DataRewriter {
  readonly #options: RewriteDataOptions;
  count = 0;

  constructor(options: RewriteDataOptions) {
    this.#options = options;
  }

  /** The state comes last: while it is old, a repetition looks at the checkpoints again. */
  async rewriteSandbox(key: string, sandbox: SandboxId): Promise<void> {
    const { store, keyring } = this.#options;
    const stored = await store.get(key);
    if (stored === undefined) return;
    const content = this.#openState(key, stored.bytes);
    const tenant = stateSchema.safeParse(parseJson(key, store, content)).data?.record.tenant;
    // A state without content has no checkpoints yet.
    if (tenant !== undefined) {
      for await (const { key: manifest } of store.list(`checkpoints/${sandbox}/`)) {
        await this.#rewriteManifest(manifest, { sandbox, tenant });
      }
    }
    await store.put(key, sealObject(keyring, key, content), { ifMatch: stored.tag });
    this.count += 1;
  }

  #openState(key: string, bytes: Uint8Array): Uint8Array {
    if (isUnprotected(bytes) && this.#options.acceptUnprotected) return bytes;
    const opened = openObject(this.#options.keyring, key, bytes);
    if ("fault" in opened) throw damaged(key, this.#options.store, opened.fault);
    return opened.content;
  }

  async #rewriteManifest(key: string, owner: Pick<Manifest, "sandbox" | "tenant">): Promise<void> {
    const { store, keyring } = this.#options;
    const stored = await store.get(key);
    if (stored === undefined) return;
    const tenant = new TenantChunks(keyring, owner.tenant);
    const write = async (files: readonly CheckpointFile[]) => {
      const sealed = sealManifest(keyring, key, { ...owner, version: 2, secretId: keyring.currentId, files });
      await store.put(key, sealed, { ifMatch: stored.tag });
      this.count += 1;
    };
    if (isUnprotected(stored.bytes) && this.#options.acceptUnprotected) {
      const files = parseEarlierManifest(stored.bytes);
      if (files === undefined) throw damaged(key, store, "it is not a manifest of an earlier version");
      return write(await this.#rewriteChunks(files, { key, tenant, decode: decodeEarlierChunk }));
    }
    const opened = openManifest(keyring, key, stored.bytes);
    if ("fault" in opened) throw damaged(key, store, opened.fault);
    if (opened.manifest.secretId === keyring.currentId) return;
    const decode: Decode = (hash, bytes, size) => tenant.decode(hash, bytes, size);
    return write(await this.#rewriteChunks(opened.manifest.files, { key, tenant, decode }));
  }

  async #rewriteChunks(files: readonly CheckpointFile[], options: RewriteOptions): Promise<CheckpointFile[]> {
    const { store } = this.#options;
    const { key, tenant, decode } = options;
    const session = chunksIn(store).openSession();
    const rewritten = new Map<string, string>();
    const rewrite = async ({ hash, size }: { readonly hash: string; readonly size: number }) => {
      const stored = await session.get(hash);
      const content = stored && (await decode(hash, stored, size));
      if (content === undefined) throw damaged(key, store, `its chunk ${hash} is missing or damaged`);
      const next = tenant.hashOf(content);
      rewritten.set(hash, next);
      await session.put(next, await tenant.encode(next, content));
    };
    const pieces = new Map(
      files.flatMap(({ chunks }) => chunks.flatMap((piece) => ("hash" in piece ? [[piece.hash, piece]] : []))),
    );
    try {
      await forEachParallel(pieces.values(), PARALLEL, rewrite);
      await session.commit();
    } catch (thrown) {
      await session.discard();
      throw thrown;
    }
    const hashOf = (hash: string) => rewritten.get(hash) as string;
    return files.map((file) => ({
      ...file,
      chunks: file.chunks.map((piece) => ("hash" in piece ? { ...piece, hash: hashOf(piece.hash) } : piece)),
    }));
  }
}

type Decode = (hash: string, stored: Uint8Array, size: number) => Promise<Uint8Array | undefined>;

interface RewriteOptions {
  readonly key: string;
  readonly tenant: TenantChunks;
  readonly decode: Decode;
}

function parseJson(key: string, store: ObjectStore, content: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(content).toString());
  } catch {
    throw damaged(key, store, "it is not JSON");
  }
}

function damaged(key: string, { label }: ObjectStore, fault: string): SandboxError {
  return new SandboxError("object_damaged", {
    message: `cannot encrypt ${key} in the store ${label} with the current secret: ${fault}; the object was not changed`,
    hint: "delete the checkpoint, or restore the object from a backup, and repeat the command",
    details: { key, store: label },
  });
}
