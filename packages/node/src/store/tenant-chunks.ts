import { createCipheriv, createHmac, createSecretKey, type KeyObject } from "node:crypto";
import type { Keyring } from "../auth/keyring.ts";
import { packChunk, unpackChunk } from "./chunk-codec.ts";
import { open, seal } from "./sealed-bytes.ts";

/** All contents are hashed with one nonce. That is safe only because the tags are never revealed. */
const DIGEST_NONCE = Buffer.alloc(12);

/** The stored form of chunks. */
export type ChunkForm = Pick<TenantChunks, "hashOf" | "encode" | "decode">;

/** Names, encrypts and decrypts the chunks of one tenant. Equal content of two tenants has different addresses. */
export class TenantChunks {
  readonly #keyring: Keyring;
  readonly #tenant: string;
  readonly #digestKey: KeyObject;
  readonly #addressKey: KeyObject;

  constructor(keyring: Keyring, tenant: string) {
    this.#keyring = keyring;
    this.#tenant = tenant;
    this.#digestKey = createSecretKey(keyring.key("chunk digests", { tenant }) as Buffer);
    this.#addressKey = createSecretKey(keyring.key("chunk addresses", { tenant }) as Buffer);
  }

  /**
   * The address of a chunk: HMAC-SHA-256 of the content's GMAC. Without the keys, addresses reveal nothing about contents, and
   * two contents with one address cannot be found. HMAC of the content itself would take 15 times as long.
   */
  hashOf(content: Uint8Array): string {
    const gmac = createCipheriv("aes-256-gcm", this.#digestKey, DIGEST_NONCE, { authTagLength: 16 });
    gmac.setAAD(content);
    gmac.final();
    return createHmac("sha256", this.#addressKey).update(gmac.getAuthTag()).digest("hex");
  }

  /** The stored form, compressed if that saves space. The caller owns its memory. */
  async encode(hash: string, content: Uint8Array): Promise<readonly Uint8Array[]> {
    const { kind, packed } = await packChunk(content);
    const secretId = this.#keyring.currentId;
    return seal(packed, { name: hash, kind, secretId, key: this.#key(secretId) as Buffer });
  }

  /** Undefined unless a node stored these bytes as this tenant's chunk with this address and size. */
  async decode(hash: string, stored: Uint8Array, size: number): Promise<Uint8Array | undefined> {
    const opened = open(stored, { name: hash, keyOf: (secretId) => this.#key(secretId) });
    if ("fault" in opened) return undefined;
    const content = await unpackChunk(opened.content, opened.kind, size);
    return content?.length === size ? content : undefined;
  }

  #key(secretId: string): Buffer | undefined {
    return this.#keyring.key("chunks", { tenant: this.#tenant, secretId });
  }
}
