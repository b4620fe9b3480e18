import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type FlowRecord } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import type { NewEvent } from "../records/event-log.ts";
import { FlowEvents } from "./flow-events.ts";
import { flowRecord } from "./testing/flow-record.ts";

const one = createSandboxId();
let clock: FakeClock;
let emitted: NewEvent[];
let events: FlowEvents;
beforeEach(() => {
  clock = new FakeClock();
  emitted = [];
  events = new FlowEvents({ clock, events: { emit: (event) => emitted.push(event) as never } });
});

function add(fields: Partial<FlowRecord> = {}, replaces?: number): void {
  events.add([{ cursor: 1, tenant: "a", replaces, record: flowRecord({ sandboxId: one, ...fields }) }]);
}

const denied = { decision: "denied", reason: "default", suggestion: "allow=evil.example.com" } as const;

describe("events of the network", () => {
  it("name what was allowed or denied, and the rule that would allow it", () => {
    add();
    add({ ...denied, kind: "query", name: "evil.example.com", address: null, port: null });
    expect(emitted).toMatchObject([
      {
        kind: "network.allowed",
        tenant: "a",
        sandboxId: one,
        details: { what: "flow", name: "example.com", port: 443 },
      },
      { kind: "network.denied", details: { what: "query", suggestion: "allow=evil.example.com", reason: "default" } },
    ]);
  });

  it("are one per connection, and none for allowed queries", () => {
    add({ endedAt: null });
    add({}, 1);
    add({ kind: "query", name: "other.example.com", port: null });
    expect(emitted).toHaveLength(1);
  });

  it("report the same host and port once a minute", async () => {
    for (let n = 0; n < 100; n += 1) add();
    add({ port: 80 });
    expect(emitted).toHaveLength(2);
    await clock.advance(60_000);
    add();
    expect(emitted).toHaveLength(3);
  });

  it("are at most 30 at once and 10 a minute per sandbox and kind, and count what they leave out", async () => {
    const flood = () => {
      for (let n = 0; n < 1000; n += 1) add({ ...denied, name: `${emitted.length}-${n}.example.com` });
    };
    flood();
    expect(emitted).toHaveLength(30);
    add();
    add({ sandboxId: createSandboxId(), ...denied });
    expect(emitted).toHaveLength(32);
    await clock.advance(60_000);
    flood();
    expect(emitted).toHaveLength(42);
    expect(emitted[32]?.details).toMatchObject({ notReported: 970 });
  });

  it("that cannot be recorded are reported, and end no connection", () => {
    const errors: unknown[] = [];
    const emit = () => {
      throw new Error("the disk is full");
    };
    events = new FlowEvents({ clock, events: { emit }, onError: (error) => errors.push(error) });
    add();
    expect(errors).toHaveLength(1);
  });
});
