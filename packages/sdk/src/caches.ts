import type { CacheResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** Volumes that the containers of a project share on a node; in a cluster each node has its own. */
export class Caches {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly CacheResource[]> {
    return (await this.#http.json<{ items: CacheResource[] }>("listCaches", { signal })).items;
  }

  /** Removes the cache with its contents; refused while a sandbox uses it. */
  async clear({ project, name }: Pick<CacheResource, "project" | "name">, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("clearCache", { path: { project, cache: name }, signal });
  }
}
