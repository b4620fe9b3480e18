import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "@sandpiper/core";
import { type CreateWebhookBody, SandboxError, type WebhookResource } from "@sandpiper/protocol";
import type { NodeDatabase } from "./database.ts";

const ID_BYTES = 8;
const SECRET_BYTES = 32;

const ADD = `INSERT INTO webhooks (id, url, kinds, secret, lastEventId, createdAt)
  VALUES (:id, :url, :kinds, :secret, :lastEventId, :createdAt)`;

/** Includes the secret in plain text, because the node signs requests with it. */
export interface WebhookRecord extends WebhookResource {
  readonly secret: string;
}

export class SqliteWebhookRecords {
  readonly #database: NodeDatabase;
  readonly #clock: Clock;

  constructor(database: NodeDatabase, { clock = systemClock }: { readonly clock?: Clock | undefined } = {}) {
    this.#database = database;
    this.#clock = clock;
  }

  /** The webhook receives the events after `lastEventId`. */
  add(body: CreateWebhookBody, { lastEventId }: { readonly lastEventId: number }): WebhookRecord {
    const record: WebhookRecord = {
      id: `whk_${randomBytes(ID_BYTES).toString("hex")}`,
      url: body.url,
      kinds: body.kinds ?? null,
      createdAt: this.#clock.now().toISOString(),
      lastEventId,
      secret: `whs_${randomBytes(SECRET_BYTES).toString("base64url")}`,
    };
    this.#database.prepare(ADD).run({
      ...record,
      kinds: record.kinds && JSON.stringify(record.kinds),
      createdAt: Date.parse(record.createdAt),
    });
    return record;
  }

  /** Oldest first. */
  list(): readonly WebhookRecord[] {
    return this.#database.prepare("SELECT * FROM webhooks ORDER BY rowid").all().map(webhookFromRow);
  }

  get(id: string): WebhookRecord | undefined {
    const row = this.#database.prepare("SELECT * FROM webhooks WHERE id = :id").get({ id });
    return row && webhookFromRow(row);
  }

  remove(id: string): void {
    const { changes } = this.#database.prepare("DELETE FROM webhooks WHERE id = :id").run({ id });
    if (changes === 1) return;
    throw new SandboxError("no_such_webhook", { message: `there is no webhook ${JSON.stringify(id)}` });
  }

  /** Ignores a removed webhook, and a late delivery of an older event. */
  setLastEventId(id: string, lastEventId: number): void {
    this.#database
      .prepare("UPDATE webhooks SET lastEventId = max(lastEventId, :lastEventId) WHERE id = :id")
      .run({ id, lastEventId });
  }
}

/** The webhook without its secret. */
export function webhookResource({ id, url, kinds, createdAt, lastEventId }: WebhookRecord): WebhookResource {
  return { id, url, kinds, createdAt, lastEventId };
}

function webhookFromRow(row: Record<string, unknown>): WebhookRecord {
  const fields = row as Record<keyof WebhookRecord, never>;
  return {
    ...fields,
    kinds: fields.kinds && JSON.parse(fields.kinds),
    createdAt: new Date(fields.createdAt).toISOString(),
  };
}
