import { FakeClock } from "@sandpiper/core/testing";
import { createdWebhookSchema, webhookListSchema } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { SqliteWebhookRecords, webhookResource } from "./sqlite-webhook-records.ts";

let home: ScratchHome;
let webhooks: SqliteWebhookRecords;
const clock = new FakeClock();

beforeEach(() => {
  home = new ScratchHome();
  webhooks = new SqliteWebhookRecords(home.database, { clock });
});

describe("webhook records", () => {
  it("are read as they were written, with their secret, also after a restart", () => {
    const some = webhooks.add({ url: "https://example.com/a", kinds: ["sandbox.ready"] }, { lastEventId: 7 });
    const all = webhooks.add({ url: "https://example.com/b" }, { lastEventId: 0 });
    expect(createdWebhookSchema.parse(some)).toEqual(some);
    expect(all.kinds).toBeNull();
    expect(all.secret).not.toBe(some.secret);
    const again = new SqliteWebhookRecords(home.reopen());
    expect(again.list()).toEqual([some, all]);
    expect(again.get(some.id)).toEqual(some);
  });

  it("are shown without their secret", () => {
    const record = webhooks.add({ url: "https://example.com" }, { lastEventId: 0 });
    expect(webhookListSchema.safeParse({ items: [webhookResource(record)] }).success).toBe(true);
    expect(JSON.stringify(webhookResource(record))).not.toContain(record.secret);
  });

  it("remember the newest delivered event, even if an older one is confirmed later", () => {
    const { id } = webhooks.add({ url: "https://example.com" }, { lastEventId: 3 });
    webhooks.setLastEventId(id, 9);
    webhooks.setLastEventId(id, 8);
    expect(webhooks.get(id)?.lastEventId).toBe(9);
  });

  it("stay removed when a delivery in progress ends later", () => {
    const { id } = webhooks.add({ url: "https://example.com" }, { lastEventId: 3 });
    webhooks.remove(id);
    webhooks.setLastEventId(id, 4);
    expect(webhooks.get(id)).toBeUndefined();
    expect(() => webhooks.remove(id)).toThrow(
      expect.objectContaining({ code: "not_found", reason: "no_such_webhook" }),
    );
  });
});
