import { type Clock, SandboxError, systemClock } from "@sandpiper/core";
import type { CreateWebhookBody, WebhookResource } from "@sandpiper/protocol";
import type { SqliteEventLog } from "../records/sqlite-event-log.ts";
import { type SqliteWebhookRecords, type WebhookRecord, webhookResource } from "../records/sqlite-webhook-records.ts";
import { canBePublic } from "./post-webhook.ts";
import { deliverEvents } from "./webhook-delivery.ts";

export interface WebhooksOptions {
  readonly records: SqliteWebhookRecords;
  readonly events: SqliteEventLog;
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
  create(body: CreateWebhookBody): WebhookRecord {
    const { records, events, allowPrivate } = this.#options;
    if (!allowPrivate && !canBePublic(new URL(body.url))) throw privateWebhook(body.url);
    const webhook = records.add(body, { lastEventId: events.newestId });
    this.#deliver(webhook);
    return webhook;
  }

  list(): readonly WebhookResource[] {
    return this.#options.records.list().map(webhookResource);
  }

  /** Nothing is sent after this resolves. */
  async remove(id: string): Promise<void> {
    this.#options.records.remove(id);
    await this.#stop(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#deliveries.keys()].map((id) => this.#stop(id)));
  }

  #deliver(webhook: WebhookRecord): void {
    const { records, events, allowPrivate, clock = systemClock, countDelivery, onFailure } = this.#options;
    const { id: webhookId } = webhook;
    const stop = new AbortController();
    const done = deliverEvents(webhook, {
      events,
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

function privateWebhook(url: string): SandboxError {
  return new SandboxError("private_webhook", {
    message: `the webhook's URL ${url} is not on the public internet`,
    details: { url },
  });
}
