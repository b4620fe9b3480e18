import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { CreateWebhookBody, EventBody, WebhookResource } from "@sandpiper/protocol";
import { canBePublic } from "./post-webhook.ts";
import { type DeliverableWebhook, deliverEvents } from "./webhook-delivery.ts";

interface WebhookRecords {
  add(body: CreateWebhookBody, options: { readonly lastEventId: number }): DeliverableWebhook;
  list(): readonly DeliverableWebhook[];
  /** Throws `not_found`. */
  remove(id: string): void;
  setLastEventId(id: string, lastEventId: number): void;
}

interface WebhookEvents {
  readonly newestId: number;
  follow(query: { readonly after: number }, signal: AbortSignal): AsyncIterable<EventBody>;
}

export interface WebhooksOptions {
  readonly records: WebhookRecords;
  readonly events: WebhookEvents;
  readonly allowPrivate: boolean;
  readonly clock?: Clock | undefined;
  readonly countDelivery?: ((outcome: "delivered" | "failed" | "given_up") => void) | undefined;
  /** Called for each failed attempt. */
  readonly onFailure?: ((failure: WebhookFailure) => void) | undefined;
}

export interface WebhookFailure {
  readonly webhookId: string;
  readonly eventId: number | null;
  readonly isGivenUp: boolean;
  readonly error: Error;
}

interface Delivery {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Posts events to webhooks. A slow receiver does not delay the others. */
export class Webhooks implements AsyncDisposable {
  readonly #options: WebhooksOptions;
  readonly #deliveries = new Map<string, Delivery>();

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  /** Resumes the deliveries of the node's previous process. */
  start(): void {
    for (const webhook of this.#options.records.list()) this.#deliver(webhook);
  }

  /** The webhook gets the events from now on. */
  create(body: CreateWebhookBody): WebhookResource & { readonly secret: string } {
    const { records, events, allowPrivate } = this.#options;
    if (!allowPrivate && !canBePublic(new URL(body.url))) throw privateWebhook(body.url);
    const webhook = records.add(body, { lastEventId: events.newestId });
    this.#deliver(webhook);
    return { ...withoutSecret(webhook), secret: webhook.secret };
  }

  list(): readonly WebhookResource[] {
    return this.#options.records.list().map(withoutSecret);
  }

  /** Nothing is sent after this resolves. */
  async remove(id: string): Promise<void> {
    this.#options.records.remove(id);
    await this.#stop(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#deliveries.keys()].map((id) => this.#stop(id)));
  }

  #deliver(webhook: DeliverableWebhook): void {
    const { records, events, allowPrivate, clock = systemClock, countDelivery, onFailure } = this.#options;
    const { id: webhookId } = webhook;
    const stop = new AbortController();
    const done = deliverEvents(webhook, {
      follow: (query, signal) => events.follow(query, signal),
      settled: (event) => records.setLastEventId(webhookId, event.id),
      attempted: (outcome, event, error) => {
        countDelivery?.(outcome);
        if (error !== undefined) {
          onFailure?.({ webhookId, eventId: event.id, isGivenUp: outcome === "given_up", error });
        }
      },
      allowPrivate,
      clock,
      signal: stop.signal,
    }).catch((thrown) => {
      const error = SandboxError.from(thrown);
      onFailure?.({ webhookId, eventId: null, isGivenUp: true, error });
    });
    this.#deliveries.set(webhookId, { stop, done });
  }

  async #stop(id: string): Promise<void> {
    const delivery = this.#deliveries.get(id);
    this.#deliveries.delete(id);
    delivery?.stop.abort();
    await delivery?.done;
  }
}

function withoutSecret({ id, url, kinds, createdAt, lastEventId }: DeliverableWebhook): WebhookResource {
  return { id, url, kinds, createdAt, lastEventId };
}

function privateWebhook(url: string): SandboxError {
  return new SandboxError("private_webhook", {
    message: `the webhook's URL ${url} is not on the public internet`,
    details: { url },
  });
}
