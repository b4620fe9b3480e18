import type { CreateWebhookBody, WebhookResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** URLs to which a node sends its events; needs a key with the scope admin. */
export class Webhooks {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  /** The only answer that contains the secret, with which the node signs its requests. */
  async create(
    webhook: CreateWebhookBody,
    { signal }: CallOptions = {},
  ): Promise<WebhookResource & { readonly secret: string }> {
    return await this.#http.json("createWebhook", { json: webhook, signal });
  }

  async list({ signal }: CallOptions = {}): Promise<readonly WebhookResource[]> {
    return (await this.#http.json<{ items: WebhookResource[] }>("listWebhooks", { signal })).items;
  }

  async remove(webhook: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("deleteWebhook", { path: { webhook }, signal });
  }
}
