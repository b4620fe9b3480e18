import type { PoolResource, SetPoolBody } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** Warm pools of a node; needs a key with the scope admin. */
export class Pools {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly PoolResource[]> {
    return (await this.#http.json<{ items: PoolResource[] }>("listPools", { signal })).items;
  }

  /** Sets the number of started instances of a kind. */
  async set(pool: SetPoolBody, { signal }: CallOptions = {}): Promise<PoolResource> {
    return await this.#http.json("setPool", { json: pool, signal, isRepeatable: true });
  }
}
