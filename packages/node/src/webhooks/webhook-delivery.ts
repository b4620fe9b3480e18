import { type Clock, pause } from "@sandpiper/core";
import type { EventBody } from "@sandpiper/protocol";
import type { EventLog } from "../records/event-log.ts";
import type { WebhookRecord } from "../records/sqlite-webhook-records.ts";
import { postWebhook } from "./post-webhook.ts";

export interface WebhookDeliveryOptions {
  readonly events: Pick<EventLog, "follow">;
  /** Called when an event was delivered or given up. */
  readonly settled: (event: EventBody) => void;
  readonly attempted: (outcome: "delivered" | "failed" | "given_up", event: EventBody, error?: Error) => void;
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** 1, 2, 4 … seconds between ten attempts: a receiver may be down for eight minutes without missing an event. */
const MAX_ATTEMPTS = 10;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
const ATTEMPT_TIMEOUT_MS = 10_000;

/**
 * Sends a webhook its events in order until the signal aborts. Each event is settled before the next one is sent: after
 * a restart, the receiver may get one event twice, but none out of order.
 */
export async function deliverEvents(webhook: WebhookRecord, options: WebhookDeliveryOptions): Promise<void> {
  const { events, settled, signal } = options;
  for await (const event of events.follow({ after: webhook.lastEventId }, signal)) {
    if (webhook.kinds !== null && !webhook.kinds.some((kind) => kind === event.kind)) continue;
    await deliver(webhook, event, options);
    if (signal.aborted) return;
    settled(event);
  }
}

async function deliver(webhook: WebhookRecord, event: EventBody, options: WebhookDeliveryOptions): Promise<void> {
  const { attempted, clock, signal } = options;
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await attemptOnce(webhook, event, options);
      attempted("delivered", event);
      return;
    } catch (thrown) {
      if (signal.aborted) return;
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      const isLast = attempt >= MAX_ATTEMPTS;
      attempted(isLast ? "given_up" : "failed", event, error);
      if (isLast) return;
      await pause(clock, Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS), signal);
    }
  }
}

async function attemptOnce(webhook: WebhookRecord, event: EventBody, options: WebhookDeliveryOptions) {
  const { allowPrivate, clock, signal } = options;
  const timeout = new AbortController();
  const onTimeout = () => timeout.abort(new Error(`the receiver did not answer within ${ATTEMPT_TIMEOUT_MS} ms`));
  const cancel = clock.schedule(ATTEMPT_TIMEOUT_MS, onTimeout);
  try {
    await postWebhook({
      url: webhook.url,
      secret: webhook.secret,
      eventId: event.id,
      body: JSON.stringify(event),
      sentAt: clock.now(),
      signal: AbortSignal.any([signal, timeout.signal]),
      allowPrivate,
    });
  } catch (thrown) {
    throw timeout.signal.aborted ? timeout.signal.reason : thrown;
  } finally {
    cancel();
  }
}
