import type { CreatedKey, CreateKeyBody, KeyResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** API keys of a node; needs a key with the scope admin. */
export class Keys {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  /** The only answer that contains the key itself. */
  async create(key: CreateKeyBody, { signal }: CallOptions = {}): Promise<CreatedKey> {
    return await this.#http.json("createKey", { json: key, signal });
  }

  async list({ signal }: CallOptions = {}): Promise<readonly KeyResource[]> {
    return (await this.#http.json<{ items: KeyResource[] }>("listKeys", { signal })).items;
  }

  async revoke(key: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("revokeKey", { path: { key }, signal });
  }
}
