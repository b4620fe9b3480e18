import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import type { Receiver } from "./receiver.ts";
import { ShipQueue } from "./ship-queue.ts";
import type { ShippedRecord } from "./shipped-record.ts";

const record = (id: number): ShippedRecord => ({
  type: "event",
  node: "n",
  tenant: null,
  id,
  at: "2026-01-01T00:00:00.000Z",
  kind: "node.started",
  sandboxId: null,
  details: {},
});
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A queue whose receiver answers as told: a number of refused records, or an error. */
function setUp({ maxQueued = 100, answer = () => 0 as number }: { maxQueued?: number; answer?: () => number } = {}) {
  const clock = new FakeClock();
  const sent: (number | string)[] = [];
  const counts = { sent: 0, dropped: 0 };
  const troubles: unknown[] = [];
  const receiver: Receiver = {
    name: "otlp",
    async send(records) {
      const refused = answer();
      sent.push(...records.map(({ id }) => id));
      return refused;
    },
    async [Symbol.asyncDispose]() {},
  };
  const queue = new ShipQueue({
    receiver,
    clock,
    maxQueued,
    count: (_, outcome, records) => (counts[outcome] += records),
    onTrouble: (name, { error, dropped }) => troubles.push([name, error?.message ?? dropped]),
  });
  return { clock, queue, sent, counts, troubles };
}

describe("the queue of a receiver", () => {
  it("sends records in order, after the turn that added them", async () => {
    const { queue, sent, counts } = setUp();
    queue.add([record(1)]);
    queue.add([record(2), record(3)]);
    expect(sent).toEqual([]);
    await queue.close(1000);
    expect(sent).toEqual([1, 2, 3]);
    expect(counts).toEqual({ sent: 3, dropped: 0 });
  });

  it("retries while the receiver fails, reports that once, and loses nothing", async () => {
    let failures = 3;
    const answer = () => {
      if (failures-- > 0) throw new Error("it is down");
      return 0;
    };
    const { clock, queue, sent, troubles } = setUp({ answer });
    queue.add([record(1)]);
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await turn();
      await turn();
      await clock.advance(30_000);
    }
    await queue.close(1000);
    expect(sent).toEqual([1]);
    expect(troubles).toEqual([["otlp", expect.stringContaining("it is down")]]);
  });

  it("drops new records while it is full, counts them, and reports their number once a minute", async () => {
    const answer = () => {
      throw new Error("it is down");
    };
    const { clock, queue, counts, troubles } = setUp({ maxQueued: 5, answer });
    for (let id = 1; id <= 12; id += 1) queue.add([record(id)]);
    expect(counts).toEqual({ sent: 0, dropped: 7 });
    await clock.advance(60_000);
    expect(troubles).toContainEqual(["otlp", 7]);
    await queue.close(0);
    expect(counts.dropped).toBe(12);
    expect(troubles.at(-1)).toEqual(["otlp", 5]);
  });

  it("leaves half of the queue to records that sandboxes do not cause", async () => {
    const { queue, counts } = setUp({ maxQueued: 10 });
    for (let id = 1; id <= 20; id += 1) queue.addLast([record(id)]);
    expect(counts.dropped).toBe(15);
    for (let id = 1; id <= 5; id += 1) queue.add([record(id)]);
    await queue.close(1000);
    expect(counts).toEqual({ sent: 10, dropped: 15 });
  });

  it("counts records that the receiver refused", async () => {
    const { queue, counts } = setUp({ answer: () => 2 });
    queue.add([record(1), record(2), record(3)]);
    await queue.close(1000);
    expect(counts).toEqual({ sent: 1, dropped: 2 });
  });
});
