import type { DrainNodeBody, NodeResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

export interface DrainOptions extends DrainNodeBody, CallOptions {}

/** The nodes that share a store; for keys that may administer them. */
export class Nodes {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly NodeResource[]> {
    return (await this.#http.json<{ items: NodeResource[] }>("listNodes", { signal })).items;
  }

  /** Has the node that answers save its sandboxes and let them go; it takes no new ones. Resolves when none is left on it. */
  async drain({ signal, ...body }: DrainOptions = {}): Promise<void> {
    await this.#http.empty("drainNode", { json: body, signal });
  }
}
