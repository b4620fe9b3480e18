import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { FakeClock } from "@sandpiper/core/testing";
import type { EventKind } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqliteEventLog } from "../records/sqlite-event-log.ts";
import { SqliteWebhookRecords } from "../records/sqlite-webhook-records.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { type WebhookFailure, Webhooks, type WebhooksOptions } from "./webhooks.ts";

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let home: ScratchHome;
let events: SqliteEventLog;
let records: SqliteWebhookRecords;
let clock: FakeClock;
let server: Server;
let url: string;
let received: Received[];
/** Returns the status of the next answer, or undefined to not answer. */
let answer: (request: Received) => number | undefined;
let failures: WebhookFailure[];
const opened: Webhooks[] = [];

beforeEach(async () => {
  home = new ScratchHome();
  clock = new FakeClock();
  events = new SqliteEventLog(home.database, { clock });
  records = new SqliteWebhookRecords(home.database);
  received = [];
  failures = [];
  answer = () => 204;
  server = createServer(async (request, response) => {
    const one = { headers: request.headers, body: String(Buffer.concat(await request.toArray())) };
    received.push(one);
    const status = answer(one);
    if (status !== undefined) response.writeHead(status, { Location: "/elsewhere" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one[Symbol.asyncDispose]()));
  server.closeAllConnections();
  server.close();
});

function open(options: Partial<WebhooksOptions> = {}): Webhooks {
  const onFailure = (failure: WebhookFailure) => void failures.push(failure);
  const webhooks = new Webhooks({ records, events, allowPrivate: true, clock, onFailure, ...options });
  webhooks.start();
  opened.push(webhooks);
  return webhooks;
}

function emit(kind: EventKind = "sandbox.ready"): number {
  return events.emit({ kind, tenant: "default", sandboxId: null }).id;
}

const ids = () => received.map(({ headers }) => Number(headers["sandpiper-event-id"]));
const arrived = (expected: readonly number[]) => expect.poll(ids).toEqual(expected);
const failed = (count: number) => expect.poll(() => failures).toHaveLength(count);
/** Advances the clock exactly to the next attempt. */
const pauseAfter = (attempt: number) => clock.advance(1000 * 2 ** (attempt - 1));

describe("a webhook", () => {
  it("gets the events after its creation, in order and signed", async () => {
    emit();
    const { secret } = open().create({ url });
    const expected = [emit("sandbox.created"), emit("sandbox.ready"), emit("sandbox.destroyed")];
    await arrived(expected);
    for (const { headers, body } of received) {
      const signature = createHmac("sha256", secret).update(`${headers["sandpiper-timestamp"]}.${body}`).digest("hex");
      expect(headers["sandpiper-signature"]).toBe(`v1=${signature}`);
      expect(headers["sandpiper-timestamp"]).toBe("1700000000");
      expect(headers["content-type"]).toBe("application/json");
    }
    expect(received.map(({ body }) => JSON.parse(body).kind)).toEqual([
      "sandbox.created",
      "sandbox.ready",
      "sandbox.destroyed",
    ]);
  });

  it("gets only the kinds of events that it asked for", async () => {
    open().create({ url, kinds: ["sandbox.failed"] });
    emit();
    const wanted = emit("sandbox.failed");
    emit();
    await arrived([wanted]);
  });

  it("shows its secret once", async () => {
    const webhooks = open();
    const { secret, ...shown } = webhooks.create({ url });
    expect(secret).not.toBe("");
    expect(webhooks.list()).toEqual([shown]);
  });

  it("is retried with exponential backoff until it accepts an event, and keeps the order", async () => {
    answer = ({ headers }) => (received.length <= 3 && headers["sandpiper-event-id"] === "1" ? 500 : 200);
    open().create({ url });
    const [one, two] = [emit(), emit()];
    for (const [index, pauseMs] of [1000, 2000, 4000].entries()) {
      await failed(index + 1);
      await clock.advance(pauseMs - 1);
      expect(received).toHaveLength(index + 1);
      await clock.advance(1);
      await expect.poll(() => received.length).toBeGreaterThan(index + 1);
    }
    await arrived([one, one, one, one, two]);
    expect(failures[0]?.error.message).toBe("the receiver answered with status 500");
  });

  it("skips an event that its receiver rejects ten times", async () => {
    const outcomes: string[] = [];
    const bad = emit() + 1;
    answer = ({ headers }) => (headers["sandpiper-event-id"] === String(bad) ? 500 : 200);
    const webhooks = open({ countDelivery: (outcome) => void outcomes.push(outcome) });
    webhooks.create({ url });
    emit();
    const good = emit();
    for (let attempt = 1; attempt <= 10; attempt++) {
      await failed(attempt);
      await pauseAfter(attempt);
    }
    await expect.poll(() => ids().at(-1)).toBe(good);
    expect(failures.at(-1)).toMatchObject({ eventId: bad, isGivenUp: true });
    expect(outcomes).toEqual([...Array(9).fill("failed"), "given_up", "delivered"]);
    await expect.poll(() => webhooks.list()[0]?.lastEventId).toBe(good);
  });

  it("does not delay other webhooks when its receiver fails", async () => {
    answer = ({ headers }) => (headers.host?.startsWith("localhost") ? 500 : 200);
    const webhooks = open();
    webhooks.create({ url: url.replace("127.0.0.1", "localhost") });
    webhooks.create({ url });
    const [one, two] = [emit(), emit()];
    const fine = () => received.filter(({ headers }) => !headers.host?.startsWith("localhost"));
    await expect.poll(() => fine().map(({ headers }) => Number(headers["sandpiper-event-id"]))).toEqual([one, two]);
  });

  it("fails an attempt that its receiver does not answer within 10 seconds", async () => {
    answer = () => undefined;
    open().create({ url });
    emit();
    await expect.poll(() => received).toHaveLength(1);
    await clock.advance(10_000);
    await failed(1);
    expect(failures[0]?.error.message).toBe("the receiver did not answer within 10000 ms");
  });

  it("follows no redirects", async () => {
    answer = () => 302;
    open().create({ url });
    const id = emit();
    await failed(1);
    expect(failures[0]?.error.message).toContain("302");
    expect(ids()).toEqual([id]);
  });

  it("gets the events that it missed during a restart of the node, and no event twice", async () => {
    const first = open();
    first.create({ url });
    const taken = emit();
    await arrived([taken]);
    await expect.poll(() => first.list()[0]?.lastEventId).toBe(taken);
    await first[Symbol.asyncDispose]();
    const missed = [emit(), emit()];
    expect(ids()).toEqual([taken]);
    open();
    await arrived([taken, ...missed]);
  });

  it("gets no more events once it is removed, even between two attempts", async () => {
    answer = () => 500;
    const webhooks = open();
    const { id } = webhooks.create({ url });
    emit();
    await failed(1);
    await webhooks.remove(id);
    await pauseAfter(1);
    expect(received).toHaveLength(1);
    expect(webhooks.list()).toEqual([]);
    await expect(webhooks.remove(id)).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a webhook to a private address", () => {
  it.each([
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://[::1]/",
    "http://localhost/",
    "http://169.254.169.254/x",
  ])("is refused: %s", (target) => {
    const webhooks = open({ allowPrivate: false });
    expect(() => webhooks.create({ url: target })).toThrow(expect.objectContaining({ reason: "private_webhook" }));
    expect(webhooks.list()).toEqual([]);
  });

  it("gets no requests if it was created while private addresses were allowed", async () => {
    records.add({ url }, { lastEventId: 0 });
    records.add({ url: url.replace("127.0.0.1", "localhost") }, { lastEventId: 0 });
    open({ allowPrivate: false });
    emit();
    await failed(2);
    expect(failures.every(({ error }) => error.message.includes("not a public address"))).toBe(true);
    expect(received).toEqual([]);
  });
});
