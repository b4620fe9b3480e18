import type { Activity, Clock } from "@sandpiper/protocol";
import { FakeClock } from "@sandpiper/protocol/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ExpiryReason, Lifetime, type LifetimePolicy } from "./lifetime.ts";

const SECOND = 1000;
const DAY = 24 * 3600 * SECOND;

/** Records the delays of its timers; its wall clock can be set. */
class TestClock extends FakeClock {
  readonly delays: number[] = [];
  skewMs = 0;

  override now(): Date {
    return new Date(super.now().getTime() + this.skewMs);
  }

  override schedule(delayMs: number, callback: () => void): () => void {
    this.delays.push(delayMs);
    return super.schedule(delayMs, callback);
  }
}

function start(
  { expiresInMs, ...policy }: Partial<LifetimePolicy> & { readonly expiresInMs?: number } = {},
  clock = new TestClock(),
) {
  const ended: { reason: ExpiryReason; atMs: number }[] = [];
  const lifetime = new Lifetime({
    expiresAt: expiresInMs === undefined ? null : inMs(clock, expiresInMs),
    idleTimeoutMs: null,
    idleExcept: [],
    ...policy,
    clock,
    onExpiry: (reason) => ended.push({ reason, atMs: clock.monotonicMs() }),
  });
  return { clock, lifetime, ended };
}

function inMs(clock: Clock, ms: number): Date {
  return new Date(clock.now().getTime() + ms);
}

describe("a sandbox with an expiry", () => {
  it("ends at that time, once, however much it is used", async () => {
    const { clock, lifetime, ended } = start({ expiresInMs: 5 * SECOND });
    using _ = lifetime.hold("process");
    await clock.advance(4999);
    lifetime.touch("exec");
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toEqual([{ reason: "ttl", atMs: 5000 }]);
    await clock.advance(DAY / 24);
    expect(ended).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it("in the past ends soon, but not before its constructor has returned", async () => {
    const { clock, ended } = start({ expiresInMs: -DAY });
    expect(ended).toEqual([]);
    await clock.advance(0);
    expect(ended).toEqual([{ reason: "ttl", atMs: 0 }]);
  });

  it("has it extended, shortened and removed while it runs", async () => {
    const { clock, lifetime, ended } = start({ expiresInMs: 5 * SECOND });
    lifetime.update({ expiresAt: inMs(clock, 20 * SECOND) });
    await clock.advance(10 * SECOND);
    lifetime.update({ expiresAt: null });
    await clock.advance(60 * SECOND);
    expect(ended).toEqual([]);
    expect(clock.pending).toBe(0);
    lifetime.update({ expiresAt: inMs(clock, SECOND) });
    await clock.advance(SECOND);
    expect(ended).toEqual([{ reason: "ttl", atMs: 71 * SECOND }]);
  });

  it("in a year ends in a year, although no timer can wait that long", () => {
    const { clock, ended } = start({ expiresInMs: 365 * DAY });
    clock.run(365 * DAY - 1);
    expect(ended).toEqual([]);
    clock.run(1);
    expect(ended).toEqual([{ reason: "ttl", atMs: 365 * DAY }]);
    expect(clock.delays.every((delayMs) => delayMs < 2 ** 31)).toBe(true);
  });

  it("notices within a minute that the wall clock was set", () => {
    const { clock, ended } = start({ expiresInMs: DAY });
    clock.run(10 * SECOND);
    clock.skewMs = 2 * DAY;
    clock.run(60 * SECOND);
    expect(ended).toMatchObject([{ reason: "ttl" }]);
  });
});

describe("a sandbox with an idle timeout", () => {
  it("ends when nothing has happened for that long", async () => {
    const { clock, ended } = start({ idleTimeoutMs: 2 * SECOND });
    await clock.advance(2 * SECOND);
    expect(ended).toEqual([{ reason: "idle", atMs: 2000 }]);
  });

  it("counts from the end of the last activity, not from the attach before it", async () => {
    const { clock, lifetime, ended } = start({ idleTimeoutMs: 2 * SECOND });
    const client = lifetime.hold("client");
    await clock.advance(10_500);
    client[Symbol.dispose]();
    await clock.advance(1900);
    lifetime.touch("exec");
    await clock.advance(1900);
    expect(ended).toEqual([]);
    await clock.advance(100);
    expect(ended).toEqual([{ reason: "idle", atMs: 14_400 }]);
  });

  it("is not idle while any holder is left, and a holder releases once", async () => {
    const { clock, lifetime, ended } = start({ idleTimeoutMs: SECOND });
    const first = lifetime.hold("process");
    const second = lifetime.hold("process");
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    await clock.advance(60 * SECOND);
    expect(ended).toEqual([]);
    second[Symbol.dispose]();
    await clock.advance(999);
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toMatchObject([{ reason: "idle" }]);
  });

  it("is kept active by every activity except those that its policy excludes", async () => {
    const activities: Activity[] = ["exec", "stdin", "output", "file", "client", "process"];
    for (const activity of activities) {
      const others = activities.filter((other) => other !== activity);
      const { clock, ...excepting } = start({ idleTimeoutMs: SECOND, idleExcept: [activity] });
      const counting = start({ idleTimeoutMs: SECOND, idleExcept: others }, clock);
      excepting.lifetime.hold(activity);
      await clock.advance(800);
      for (const { lifetime } of [excepting, counting]) lifetime.touch(activity);
      await clock.advance(200);
      expect(excepting.ended).toEqual([{ reason: "idle", atMs: 1000 }]);
      expect(counting.ended).toEqual([]);
      counting.lifetime.dispose();
    }
  });

  it("has the whole of a new timeout before it, even when it was idle for longer", async () => {
    const { clock, lifetime, ended } = start({ idleTimeoutMs: null });
    await clock.advance(DAY / 24);
    lifetime.update({ idleTimeoutMs: 5 * SECOND });
    await clock.advance(4 * SECOND);
    lifetime.update({ idleTimeoutMs: 2 * SECOND });
    await clock.advance(1999);
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toMatchObject([{ reason: "idle" }]);
  });

  it("that changes its policy applies it to current holders", async () => {
    const { clock, lifetime, ended } = start({ idleTimeoutMs: SECOND, idleExcept: ["process"] });
    lifetime.hold("process");
    await clock.advance(500);
    lifetime.update({ idleExcept: [] });
    await clock.advance(60 * SECOND);
    expect(ended).toEqual([]);
    lifetime.update({ idleExcept: ["process"] });
    await clock.advance(999);
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toMatchObject([{ reason: "idle" }]);
  });

  it("creates no timer for an activity", () => {
    const { clock, lifetime } = start({ expiresInMs: DAY, idleTimeoutMs: 10 * SECOND });
    for (let at = 0; at < 10_000; at++) {
      lifetime.touch("output");
      using _ = lifetime.hold("exec");
    }
    expect(clock.delays).toHaveLength(1);
    clock.run(9 * SECOND);
    expect(clock.delays).toHaveLength(1);
    expect(clock.pending).toBe(1);
  });

  it("wakes the program once per timeout while it is held", () => {
    const { clock, lifetime } = start({ idleTimeoutMs: 10 * SECOND });
    lifetime.hold("process");
    clock.run(100 * SECOND);
    expect(clock.delays).toHaveLength(11);
  });

  it("of one millisecond does not wake the program continuously while it is used", () => {
    const { clock, lifetime } = start({ idleTimeoutMs: 1 });
    lifetime.hold("process");
    clock.run(10 * SECOND);
    expect(clock.delays.length).toBeLessThanOrEqual(201);
  });
});

describe("a lifetime", () => {
  it("needs no timer without limits, and reports no end", () => {
    const { clock, lifetime } = start();
    expect(clock.pending).toBe(0);
    expect(lifetime.dueAt).toBeNull();
  });

  it("reports when it ends without further activity", async () => {
    const { clock, lifetime } = start({ expiresInMs: 10 * SECOND, idleTimeoutMs: 4 * SECOND });
    const expiresAt = inMs(clock, 10 * SECOND);
    await clock.advance(SECOND);
    lifetime.touch("file");
    expect(lifetime.dueAt).toEqual(inMs(clock, 4 * SECOND));
    const held = lifetime.hold("process");
    expect(lifetime.dueAt).toEqual(expiresAt);
    lifetime.update({ expiresAt: null });
    expect(lifetime.dueAt).toBeNull();
    held[Symbol.dispose]();
    lifetime.dispose();
  });

  it("that was disposed never expires and leaves no timer", async () => {
    const { clock, lifetime, ended } = start({ expiresInMs: SECOND, idleTimeoutMs: SECOND });
    const held = lifetime.hold("exec");
    lifetime.dispose();
    held[Symbol.dispose]();
    lifetime.touch("exec");
    lifetime.update({ idleTimeoutMs: 1, expiresAt: inMs(clock, 1) });
    expect(clock.pending).toBe(0);
    await clock.advance(60 * SECOND);
    expect(ended).toEqual([]);
  });

  it("ends within 50 ms of its due time, and never before, in any order of events", () => {
    const activity = fc.constantFrom<Activity>("exec", "output", "process");
    const step = fc.oneof(
      fc.record({ do: fc.constant("touch" as const), activity }),
      fc.record({ do: fc.constant("hold" as const), activity }),
      fc.record({ do: fc.constant("release" as const) }),
      fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 900 }) }),
      fc.record({ do: fc.constant("idle" as const), ms: fc.option(fc.integer({ min: 1, max: 4000 })) }),
      fc.record({ do: fc.constant("ttl" as const), ms: fc.option(fc.integer({ min: 0, max: 9000 })) }),
      fc.record({ do: fc.constant("except" as const), activities: fc.uniqueArray(activity) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40, size: "max" }), (steps) => {
        const { clock, lifetime, ended } = start({ idleTimeoutMs: 1000 });
        const held: { activity: Activity; handle: Disposable }[] = [];
        const model = { lastMs: 0, idleMs: 1000 as number | null, ttlAtMs: null as number | null };
        let except: readonly Activity[] = [];
        const dueMs = () => {
          const isHeld = held.some((one) => !except.includes(one.activity));
          const idleAtMs = model.idleMs === null || isHeld ? Number.POSITIVE_INFINITY : model.lastMs + model.idleMs;
          return Math.min(idleAtMs, model.ttlAtMs ?? Number.POSITIVE_INFINITY);
        };
        const wait = (ms: number) => {
          const due = Math.max(dueMs(), clock.monotonicMs());
          for (let left = ms; left > 0 && ended.length === 0; left--) clock.run(1);
          const [end] = ended;
          if (end === undefined) expect(clock.monotonicMs()).toBeLessThan(due + 50);
          else {
            expect(end.atMs).toBeGreaterThanOrEqual(due);
            expect(end.atMs).toBeLessThanOrEqual(due + 50);
          }
        };
        for (const one of [...steps, { do: "wait" as const, ms: 1 }]) {
          const nowMs = clock.monotonicMs();
          if (one.do === "touch") {
            lifetime.touch(one.activity);
            if (!except.includes(one.activity)) model.lastMs = nowMs;
          } else if (one.do === "hold") {
            held.push({ activity: one.activity, handle: lifetime.hold(one.activity) });
          } else if (one.do === "release") {
            const last = held.pop();
            last?.handle[Symbol.dispose]();
            if (last !== undefined && !except.includes(last.activity)) model.lastMs = nowMs;
          } else if (one.do === "idle") {
            lifetime.update({ idleTimeoutMs: one.ms });
            Object.assign(model, { idleMs: one.ms, lastMs: nowMs });
          } else if (one.do === "ttl") {
            lifetime.update({ expiresAt: one.ms === null ? null : inMs(clock, one.ms) });
            model.ttlAtMs = one.ms === null ? null : nowMs + one.ms;
          } else if (one.do === "except") {
            lifetime.update({ idleExcept: one.activities });
            except = one.activities;
            model.lastMs = nowMs;
          } else wait(one.ms);
          if (ended.length > 0) break;
        }
        lifetime.dispose();
        expect(clock.pending).toBe(0);
        expect(ended.length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
