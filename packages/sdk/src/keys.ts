import type { CreatedKey, CreateKeyBody, KeyResource, UpdateKeyBody } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

export interface UsageOptions extends CallOptions {
  /** Adds what each uses. In a cluster, the node reads the states of all sandboxes for this. */
  readonly usage?: boolean | undefined;
}

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

  /** With `usage`, each key has what it uses of its quota. */
  async list({ usage = false, signal }: UsageOptions = {}): Promise<readonly KeyResource[]> {
    const query = usage ? { usage } : {};
    return (await this.#http.json<{ items: KeyResource[] }>("listKeys", { query, signal })).items;
  }

  /** Changes the name, the expiry and the given limits of the quota; null removes a limit. */
  async update(key: string, changes: UpdateKeyBody, { signal }: CallOptions = {}): Promise<KeyResource> {
    return await this.#http.json("updateKey", { path: { key }, json: changes, signal, isRepeatable: true });
  }

  async revoke(key: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("revokeKey", { path: { key }, signal });
  }
}
