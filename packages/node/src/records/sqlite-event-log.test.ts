import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { FakeClock, settle } from "@sandpiper/core/testing";
import { createSandboxId, type EventBody, eventSchema } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openDatabase } from "./database.ts";
import type { EventQuery } from "./event-log.ts";
import { SqliteEventLog } from "./sqlite-event-log.ts";

let home: ScratchHome;
let log: SqliteEventLog;
let stop: AbortController;
const clock = new FakeClock();

beforeEach(() => {
  home = new ScratchHome();
  log = new SqliteEventLog(home.database, { clock });
  stop = new AbortController();
});

afterEach(() => stop.abort());

const sandboxId = createSandboxId();

function emit(count: number, fields: { tenant?: string | null; sandboxId?: null } = {}, target = log): EventBody[] {
  const event = { kind: "sandbox.updated", tenant: "a", sandboxId, ...fields } as const;
  return Array.from({ length: count }, (_, n) => target.emit({ ...event, details: { n } }));
}

/** Collects the ids of followed events. */
function follow(query: EventQuery, target = log): { ids: number[]; ended: Promise<void> } {
  const ids: number[] = [];
  const read = async () => {
    for await (const { id } of target.follow(query, stop.signal)) ids.push(id);
  };
  return { ids, ended: read() };
}

function upTo(last: number, first = 1): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

describe("the event log", () => {
  it("keeps events in the order in which they were emitted", () => {
    const events = emit(3);
    const withoutDetails = log.emit({ kind: "node.started", tenant: null, sandboxId: null });
    expect(log.list({ after: 0, limit: 10 })).toEqual([...events, withoutDetails]);
    expect(events[1]).toEqual({
      id: 2,
      at: clock.now().toISOString(),
      kind: "sandbox.updated",
      sandboxId,
      details: { n: 1 },
    });
    expect(eventSchema.safeParse(withoutDetails).success).toBe(true);
  });

  it("lists a limited number of events after an id", () => {
    emit(5);
    expect(log.list({ after: 2, limit: 2 }).map(({ id }) => id)).toEqual([3, 4]);
    expect(log.list({ after: 5, limit: 2 })).toEqual([]);
  });

  it("shows a tenant only its own events, and no tenant those of the node", () => {
    emit(1);
    emit(1, { tenant: "b" });
    emit(1, { tenant: null, sandboxId: null });
    expect(log.list({ tenant: "a", after: 0, limit: 9 }).map(({ id }) => id)).toEqual([1]);
    expect(log.list({ tenant: "b", sandboxId: createSandboxId(), after: 0, limit: 9 })).toEqual([]);
    expect(log.list({ sandboxId, after: 0, limit: 9 }).map(({ id }) => id)).toEqual([1, 2]);
  });

  it("keeps only the newest events, also on disk", () => {
    const small = new SqliteEventLog(home.database, { maxEvents: 50 });
    emit(320, {}, small);
    expect(small.list({ after: 0, limit: 1000 }).map(({ id }) => id)).toEqual(upTo(320, 271));
    const { stored } = home.database.prepare("SELECT count(*) AS stored FROM events").get() ?? {};
    expect(stored).toBeLessThan(150);
  });

  it("never reuses an id, even after all events were removed and the node restarted", () => {
    emit(3);
    expect(new SqliteEventLog(home.reopen(), { maxEvents: 0 }).list({ after: 0, limit: 9 })).toEqual([]);
    const again = new SqliteEventLog(home.reopen());
    expect(again.newestId).toBe(3);
    expect(emit(1, {}, again)[0]?.id).toBe(4);
  });

  it("calls listeners with stored events until they unsubscribe", () => {
    const received: EventBody[] = [];
    const subscription = log.subscribe((event) => {
      expect(log.list({ after: event.id - 1, limit: 1 })).toEqual([event]);
      received.push(event);
    });
    const [first] = emit(1);
    subscription[Symbol.dispose]();
    emit(1);
    expect(received).toEqual([first]);
  });

  it("keeps every emitted event after a kill -9", async () => {
    const url = (name: string) => JSON.stringify(join(import.meta.dirname, name));
    const program = `
      const { openDatabase } = await import(${url("../records/database.ts")});
      const { SqliteEventLog } = await import(${url("sqlite-event-log.ts")});
      const log = new SqliteEventLog(openDatabase(${JSON.stringify(join(home.path, "killed.db"))}));
      const next = () => {
        const { id } = log.emit({ kind: "node.started", tenant: null, sandboxId: null });
        process.stdout.write(id + "\\n", () => setImmediate(next));
      };
      next();`;
    const writer = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    writer.stdout.on("data", (chunk) => {
      output += chunk;
      if (output.length > 2000) writer.kill("SIGKILL");
    });
    await once(writer, "close");
    const last = Number(output.slice(0, output.lastIndexOf("\n")).split("\n").at(-1));
    using database = openDatabase(join(home.path, "killed.db"));
    const ids = new SqliteEventLog(database).list({ after: 0, limit: 100_000 }).map(({ id }) => id);
    expect(last).toBeGreaterThan(100);
    expect(ids.slice(0, last)).toEqual(upTo(last));
  });
});

describe("following the event log", () => {
  it("replays events after an id and then yields new ones, without gaps or repeats", async () => {
    emit(700);
    const reader = follow({ after: 100 });
    for (let burst = 0; burst < 20; burst += 1) {
      emit(15);
      await settle();
    }
    await expect.poll(() => reader.ids.length).toBe(900);
    expect(reader.ids).toEqual(upTo(1000, 101));
  });

  it("yields all events to a slow reader", async () => {
    const reader = log.follow({ after: 0 }, stop.signal);
    const first = reader.next();
    emit(1000);
    expect((await first).value?.id).toBe(1);
    emit(1000);
    const ids = [1];
    while (ids.length < 2000) ids.push((await reader.next()).value?.id as number);
    expect(ids).toEqual(upTo(2000));
  });

  it("continues with the oldest remaining event for a reader that fell too far behind", async () => {
    const small = new SqliteEventLog(home.database, { maxEvents: 300 });
    const reader = small.follow({ after: 0 }, stop.signal);
    const first = reader.next();
    emit(1000, {}, small);
    expect((await first).value?.id).toBe(701);
  });

  it("yields only events that match the query", async () => {
    const own = follow({ tenant: "a", after: 0 });
    const other = follow({ tenant: "b", sandboxId, after: 0 });
    emit(2);
    emit(1, { tenant: "b" });
    emit(1, { tenant: "b", sandboxId: null });
    emit(1, { tenant: null, sandboxId: null });
    emit(1);
    await expect.poll(() => [own.ids, other.ids]).toEqual([[1, 2, 6], [3]]);
  });

  it("starts with the next event for an id that was never assigned", async () => {
    emit(2);
    const reader = follow({ after: 5000 });
    emit(1);
    await expect.poll(() => reader.ids).toEqual([3]);
  });

  it("ends when its signal aborts, both while it waits and while it has more to read", async () => {
    emit(500);
    const reader = follow({ after: 0 });
    await expect.poll(() => reader.ids.length).toBe(500);
    const busy = log.follow({ after: 0 }, stop.signal);
    await busy.next();
    stop.abort();
    await reader.ended;
    expect(await busy.next()).toEqual({ done: true, value: undefined });
    expect(await log.follow({ after: 0 }, stop.signal).next()).toEqual({ done: true, value: undefined });
  });
});
