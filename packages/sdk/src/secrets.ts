import type { CreateSecretBody, SecretResource, UpdateSecretBody } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** Secrets of the key's tenant. A node injects them into requests of sandboxes that use them; no call returns a value. */
export class Secrets {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async create(secret: CreateSecretBody, { signal }: CallOptions = {}): Promise<SecretResource> {
    return await this.#http.json("createSecret", { json: secret, signal });
  }

  async list({ signal }: CallOptions = {}): Promise<readonly SecretResource[]> {
    return (await this.#http.json<{ items: SecretResource[] }>("listSecrets", { signal })).items;
  }

  /** The next request of every sandbox that uses it has the new value. Other changes than `env` need the value, too. */
  async update(secret: string, changes: UpdateSecretBody, { signal }: CallOptions = {}): Promise<SecretResource> {
    return await this.#http.json("updateSecret", { path: { secret }, json: changes, signal, isRepeatable: true });
  }

  async remove(secret: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("deleteSecret", { path: { secret }, signal });
  }
}
