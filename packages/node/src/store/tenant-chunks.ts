import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import type { Keyring } from "../auth/keyring.ts";
import { packChunk, unpackChunk } from "./chunk-codec.ts";
import { open, seal } from "./sealed-bytes.ts";

/** Names, encrypts and decrypts the chunks of one tenant. Equal content of two tenants has different addresses. */
export class TenantChunks {
  readonly #keyring: Keyring;
  readonly #tenant: string;
  readonly #addressKey: KeyObject;

  constructor(keyring: Keyring, tenant: string) {
    this.#keyring = keyring;
    this.#tenant = tenant;
    this.#addressKey = createSecretKey(keyring.key("chunk addresses", { tenant }) as Buffer);
  }

  /** A keyed hash: without the key, an address reveals nothing about the content. */
  hashOf(content: Uint8Array): string {
    return createHmac("sha256", this.#addressKey).update(content).digest("hex");
  }

  /** The stored form, compressed if that saves space. */
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
