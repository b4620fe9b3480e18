import type { DrainNodeBody, NodeResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

export interface DrainOptions extends DrainNodeBody, CallOptions {}

/** The nodes that share a store; needs a key with the scope admin. */
export class Nodes {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly NodeResource[]> {
    return (await this.#http.json<{ items: NodeResource[] }>("listNodes", { signal })).items;
  }

  /** Drains the node that answers: it saves and releases its sandboxes and accepts no new ones. Resolves when it is empty. */
  async drain({ signal, ...body }: DrainOptions = {}): Promise<void> {
    await this.#http.empty("drainNode", { json: body, signal });
  }
}
