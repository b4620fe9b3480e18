import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import {
  acquired,
  away,
  CHECKPOINT_BUDGET_MS,
  Cluster,
  DURATION_MS,
  heldByA,
  MAX_SKEW_MS,
  skewed,
} from "./testing/cluster.ts";

describe("a node that waits for a lease", () => {
  it("is seen by the owner immediately, and gets the lease as soon as it is released", async () => {
    const { cluster, id, b, lease } = await heldByA();
    const seen: unknown[] = [];
    lease.onWaiter((waiter) => {
      seen.push(waiter);
      void lease.release();
    });
    const { lease: next, previous } = await b.leases.wait(id, { takeover: false });
    expect({ previous, epoch: next.epoch }).toEqual({ previous: "released", epoch: 2 });
    expect(seen).toEqual([{ node: "b", url: "http://b", takeover: false }]);
    expect(cluster.nudges).toEqual(["b → http://a", "a → http://b"]);
    expect(cluster.clock.monotonicMs()).toBe(0);
    expect(await cluster.lock()).toMatchObject({ owner: "b", waiter: null });
  });

  it("is seen with the next renewal when its nudge was lost, and once only", async () => {
    const { cluster, id, b, lease } = await heldByA();
    cluster.losesNudges = true;
    const seen: unknown[] = [];
    lease.onWaiter((waiter) => seen.push(waiter));
    const waiting = b.leases.wait(id, { takeover: false });
    await cluster.clock.advance(4_999);
    expect(seen).toEqual([]);
    await cluster.clock.advance(10_000);
    expect(seen).toHaveLength(1);
    await lease.release();
    await cluster.clock.advance(1_000);
    expect((await waiting).lease.epoch).toBe(2);
  });

  it("outlasts a crashed owner, at any time of its last renewal and with the largest allowed skew", async () => {
    for (const skewMs of [-MAX_SKEW_MS, 0, MAX_SKEW_MS]) {
      const cluster = new Cluster();
      const [a, b] = [cluster.start("a"), cluster.start("b", skewed(cluster.clock, skewMs))];
      const { lease } = acquired(await a.leases.acquire(cluster.id));
      const waiting = b.leases.wait(cluster.id, { takeover: false });
      // The worst owner: it lives to the end of its budget, and dies when it should release.
      await cluster.clock.advance(CHECKPOINT_BUDGET_MS);
      await lease.renewNow();
      a.leases.dispose();
      await cluster.clock.advance(DURATION_MS + 2 * MAX_SKEW_MS + 1_000);
      expect(await waiting).toMatchObject({ previous: "expired", lease: { epoch: 2 } });
    }
  });

  it("removes its registration after its timeout, and blocks no other node", async () => {
    const { cluster, id, b, c, lease } = await heldByA();
    const error = rejection(b.leases.wait(id, { takeover: false, patienceMs: 3_000 }));
    await cluster.clock.advance(3_000);
    expect(await error).toMatchObject({ code: "deadline_exceeded", reason: "handoff_timeout" });
    expect(await cluster.lock()).toMatchObject({ owner: "a", waiter: null });
    const waiting = c.leases.wait(id, { takeover: false });
    await cluster.clock.advance(0);
    await lease.release();
    expect((await waiting).lease.epoch).toBe(2);
  });

  it("removes its registration when its caller aborts", async () => {
    const { cluster, id, a, b } = await heldByA();
    const caller = new AbortController();
    const error = rejection(b.leases.wait(id, { takeover: false, signal: caller.signal }));
    await cluster.clock.advance(10);
    expect(await cluster.lock()).toMatchObject({ waiter: { node: "b" } });
    caller.abort();
    expect((await error).code).toBe("canceled");
    expect(await cluster.lock()).toMatchObject({ owner: "a", waiter: null });
    a.leases.dispose();
    expect(cluster.clock.pending).toBe(0);
  });

  it("releases a lease that it got without receiving the answer when its caller aborts", async () => {
    const { cluster, id, b, lease } = await heldByA();
    const caller = new AbortController();
    const error = rejection(b.leases.wait(id, { takeover: false, signal: caller.signal }));
    await cluster.clock.advance(10);
    b.network = async (call, effect) => {
      if (call.operation === "get") return effect();
      b.network = away;
      await effect();
      caller.abort();
      throw new Error("the answer was lost");
    };
    await lease.release();
    await cluster.clock.advance(100);
    b.network = (_, effect) => effect();
    await cluster.clock.advance(1_000);
    expect((await error).code).toBe("canceled");
    expect(await cluster.lock()).toMatchObject({ owner: null, epoch: 2 });
  });

  it("excludes a second one only while it lives", async () => {
    const { cluster, id, b, c, lease } = await heldByA();
    const waiting = rejection(b.leases.wait(id, { takeover: false, patienceMs: 30_000 }));
    await cluster.clock.advance(20_000);
    const error = await rejection(c.leases.wait(id, { takeover: true }));
    expect(error).toMatchObject({ code: "unavailable", reason: "handoff_under_way", retryable: true });
    // From here on b is dead: its calls do not reach the store.
    b.network = () => new Promise(() => undefined);
    await cluster.clock.advance(DURATION_MS / 2 + MAX_SKEW_MS + 1);
    const next = c.leases.wait(id, { takeover: true });
    await cluster.clock.advance(0);
    await lease.release();
    expect((await next).lease.epoch).toBe(2);
    await cluster.clock.advance(30_000);
    await waiting;
  });

  it("gets a lease that was released for it before all others", async () => {
    const { cluster, id, b, c, lease } = await heldByA();
    cluster.losesNudges = true;
    const waiting = b.leases.wait(id, { takeover: false });
    await cluster.clock.advance(2_000);
    await lease.release();
    expect(await c.leases.acquire(id)).toMatchObject({ isReleased: true, waiter: { node: "b" } });
    await cluster.clock.advance(1_000);
    expect((await waiting).lease.epoch).toBe(2);
  });

  it("is refused while a client is attached, even one that attaches later, unless it takes over", async () => {
    const { cluster, id, b, c, lease } = await heldByA();
    const early = rejection(b.leases.wait(id, { takeover: false }));
    await cluster.clock.advance(10);
    await lease.setAttached(true);
    await cluster.clock.advance(1_000);
    expect(await early).toMatchObject({ code: "failed_precondition", reason: "sandbox_in_use" });
    expect((await rejection(b.leases.wait(id, { takeover: false }))).reason).toBe("sandbox_in_use");
    expect(await cluster.lock()).toMatchObject({ attached: true, waiter: null });
    lease.onWaiter(({ takeover }) => takeover && void lease.release());
    expect((await c.leases.wait(id, { takeover: true })).lease.epoch).toBe(2);
    expect(await cluster.lock()).toMatchObject({ attached: false });
  });

  it("learns that the sandbox was destroyed", async () => {
    const { cluster, id, b, lease } = await heldByA();
    const error = rejection(b.leases.wait(id, { takeover: false }));
    await cluster.clock.advance(10);
    await lease.remove();
    await cluster.clock.advance(1_000);
    expect(await error).toMatchObject({ code: "gone", reason: "sandbox_destroyed" });
    expect(await cluster.lock()).toBeUndefined();
  });

  it("keeps waiting while the store does not answer, and ends with the store's error", async () => {
    const { cluster, id, a, b, lease } = await heldByA();
    const waiting = b.leases.wait(id, { takeover: false });
    await cluster.clock.advance(10);
    b.network = away;
    await cluster.clock.advance(5_000);
    await lease.release();
    b.network = (_, effect) => effect();
    await cluster.clock.advance(1_000);
    expect((await waiting).lease.epoch).toBe(2);

    a.network = away;
    const error = rejection(a.leases.wait(id, { takeover: false, patienceMs: 2_000 }));
    await cluster.clock.advance(10_000);
    expect(await error).toMatchObject({ reason: "handoff_timeout", cause: { message: "the store is away" } });
  });

  it("is found by an owner that was killed and started again", async () => {
    const { cluster, id, a, b } = await heldByA();
    a.leases.dispose();
    const waiting = b.leases.wait(id, { takeover: false });
    await cluster.clock.advance(1_000);
    const lease = await cluster.start("a").leases.resume(id, 1);
    lease?.onWaiter(() => void lease.release());
    expect((await waiting).lease.epoch).toBe(2);
    expect(cluster.clock.monotonicMs()).toBe(1_000);
  });
});
