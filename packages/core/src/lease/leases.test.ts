import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import {
  acquired,
  away,
  Cluster,
  DURATION_MS,
  heldByA,
  losesAnswersToWrites,
  MAX_SKEW_MS,
  skewed,
} from "./testing/cluster.ts";
import type { Network } from "./testing/node-store.ts";

const FOR_EVER_MS = 10 * DURATION_MS;

describe("a lease", () => {
  it("goes to the first caller; all others learn its owner", async () => {
    const cluster = new Cluster();
    const [a, b] = [cluster.start("a"), cluster.start("b")];
    expect(await a.leases.read(cluster.id)).toBeUndefined();
    const first = acquired(await a.leases.acquire(cluster.id));
    expect(first).toMatchObject({ previous: "none", lease: { epoch: 1, isHeld: true } });
    expect(await b.leases.acquire(cluster.id)).toMatchObject({ owner: "a", url: "http://a", epoch: 1, isLive: true });
    expect(await a.leases.acquire(cluster.id)).toMatchObject({ owner: "a" });
    expect(await cluster.lock()).toMatchObject({ owner: "a", timestamp: 1_700_000_000, attached: false, waiter: null });
  });

  it("goes to exactly one of many concurrent callers", async () => {
    const cluster = new Cluster();
    const nodes = ["a", "b", "c"].map((name) => cluster.start(name));
    const results = await Promise.all(
      nodes.flatMap(({ leases }) => [leases.acquire(cluster.id), leases.acquire(cluster.id)]),
    );
    expect(results.filter((result) => "lease" in result)).toHaveLength(1);
  });

  it("is renewed for as long as its owner lives", async () => {
    const { cluster, id, b, lease } = await heldByA();
    const deadlines: number[] = [];
    lease.onRenewed((deadlineMs) => deadlines.push(deadlineMs));
    await cluster.clock.advance(FOR_EVER_MS);
    expect(lease.isHeld).toBe(true);
    expect(await b.leases.acquire(id)).toMatchObject({ owner: "a", isLive: true });
    expect(deadlines.slice(0, 3)).toEqual([13_500, 18_500, 23_500]);
    expect(deadlines.at(-1)).toBe(lease.deadlineMs);
  });

  it("that was released goes to the next caller immediately, with a higher epoch", async () => {
    const { cluster, id, b, lease } = await heldByA();
    await lease.release();
    expect({ isHeld: lease.isHeld, isLost: lease.lost.aborted }).toEqual({ isHeld: false, isLost: false });
    expect(await b.leases.read(id)).toMatchObject({ owner: null, isReleased: true, isLive: false, epoch: 1 });
    expect(acquired(await b.leases.acquire(id))).toMatchObject({ previous: "released", lease: { epoch: 2 } });
    expect(cluster.clock.pending).toBeGreaterThan(0);
    b.leases.dispose();
    expect(cluster.clock.pending).toBe(0);
  });

  it("of a dead owner expires, and not too early by any clock within the bound", async () => {
    const cluster = new Cluster();
    const [a, b] = [cluster.start("a"), cluster.start("b", skewed(cluster.clock, MAX_SKEW_MS))];
    const { lease } = acquired(await a.leases.acquire(cluster.id));
    a.network = () => new Promise(() => undefined);
    while (lease.isHeld) {
      expect(await b.leases.acquire(cluster.id)).toMatchObject({ owner: "a" });
      await cluster.clock.advance(100);
    }
    await cluster.clock.advance(DURATION_MS);
    expect(acquired(await b.leases.acquire(cluster.id))).toMatchObject({ previous: "expired", lease: { epoch: 2 } });
  });

  it("survives a store that is unreachable for a while", async () => {
    const { cluster, a, lease } = await heldByA();
    a.network = away;
    await cluster.clock.advance(12_000);
    a.network = (_, effect) => effect();
    await cluster.clock.advance(FOR_EVER_MS);
    expect(lease.isHeld).toBe(true);
    expect(cluster.errors).not.toEqual([]);
  });

  it("survives a store that does not answer for a while", async () => {
    const { cluster, a, lease } = await heldByA();
    a.network = () => new Promise(() => undefined);
    await cluster.clock.advance(9_000);
    a.network = (_, effect) => effect();
    await cluster.clock.advance(FOR_EVER_MS);
    expect(lease.isHeld).toBe(true);
  });

  it("is lost at its deadline when the store does not answer, and can be resumed until another node acquires it", async () => {
    const { cluster, id, a, b, lease } = await heldByA();
    a.network = away;
    await cluster.clock.advance(13_499);
    expect(lease.lost.aborted).toBe(false);
    await cluster.clock.advance(1);
    expect(lease.lost.reason).toMatchObject({ code: "conflict", reason: "lease_lost" });
    expect((await rejection(lease.renewNow())).reason).toBe("lease_lost");
    await cluster.clock.advance(FOR_EVER_MS);
    a.network = (_, effect) => effect();
    expect(await a.leases.resume(id, 1)).toMatchObject({ epoch: 1, isHeld: true });
    expect(await b.leases.acquire(id)).toMatchObject({ owner: "a", isLive: true });
  });

  it("is lost immediately when a renewal finds another owner", async () => {
    const { cluster, id, lease } = await heldByA();
    const lock = { ...(await cluster.lock()), owner: "b", nonce: "b's", epoch: 2 };
    await cluster.store.put(`locks/${id}.lock`, new TextEncoder().encode(JSON.stringify(lock)));
    expect((await rejection(lease.renewNow())).reason).toBe("lease_lost");
    expect({ isHeld: lease.isHeld, isLost: lease.lost.aborted }).toEqual({ isHeld: false, isLost: true });
    expect(await cluster.lock()).toEqual(lock);
  });

  it("is not held from the first moment after a long sleep, before any timer has run", async () => {
    const cluster = new Cluster();
    let nowMs = 0;
    const clock = { monotonicMs: () => nowMs, now: () => new Date(nowMs), schedule: () => () => undefined };
    const a = cluster.start("a", clock);
    const { lease } = acquired(await a.leases.acquire(cluster.id));
    nowMs = DURATION_MS;
    expect(lease.isHeld).toBe(false);
    expect((await rejection(lease.renewNow())).reason).toBe("lease_lost");
  });

  it("is not held after the machine has slept, although the monotonic clock stood still", async () => {
    const cluster = new Cluster();
    let wallMs = 0;
    const a = cluster.start("a", { ...skewed(cluster.clock, 0), now: () => new Date(wallMs) });
    const { lease } = acquired(await a.leases.acquire(cluster.id));
    wallMs = DURATION_MS;
    expect(lease.isHeld).toBe(false);
  });

  it("counts from before its renewal was sent, not from the answer", async () => {
    const { cluster, a, lease } = await heldByA();
    a.network = async (_, effect) => {
      const result = await effect();
      await new Promise<void>((resolve) => cluster.clock.schedule(2_000, resolve));
      return result;
    };
    await cluster.clock.advance(7_001);
    expect(lease.deadlineMs).toBe(5_000 + 13_500);
  });

  it("is recognized by its owner when the answer to the acquisition was lost", async () => {
    const cluster = new Cluster();
    const [a, b] = [cluster.start("a"), cluster.start("b")];
    a.network = async (call, effect) => {
      if (call.operation === "get") return effect();
      a.network = (_, next) => next();
      return losesAnswersToWrites(call, effect);
    };
    const acquiring = a.leases.acquire(cluster.id);
    await cluster.clock.advance(1);
    // A registration leaves the owner's part of the lock unchanged.
    const waiting = b.leases.wait(cluster.id, { takeover: false });
    await cluster.clock.advance(DURATION_MS);
    const { lease, previous } = acquired(await acquiring);
    expect({ previous, epoch: lease.epoch }).toEqual({ previous: "none", epoch: 1 });
    await lease.release();
    expect((await waiting).lease.epoch).toBe(2);
  });

  it("is acquired under a new epoch by a node that slept past its end", async () => {
    const cluster = new Cluster();
    let nowMs = 0;
    const clock = { monotonicMs: () => nowMs, now: () => new Date(nowMs), schedule: () => () => undefined };
    const a = cluster.start("a", clock);
    a.network = async (call, effect) => {
      const result = await effect();
      if (call.operation === "put" && nowMs === 0) nowMs = DURATION_MS;
      return result;
    };
    const acquisition = acquired(await a.leases.acquire(cluster.id));
    expect(acquisition).toMatchObject({ previous: "none", lease: { epoch: 2, isHeld: true } });
  });

  it("is renewed and released even when every answer is lost", async () => {
    const { cluster, a, lease } = await heldByA();
    a.network = losesAnswersToWrites;
    await cluster.clock.advance(FOR_EVER_MS);
    expect(lease.isHeld).toBe(true);
    await lease.release();
    expect(await cluster.lock()).toMatchObject({ owner: null, epoch: 1 });
  });

  it("is released before pending work, and not renewed after that", async () => {
    const { cluster, lease } = await heldByA();
    const renewing = lease.renewNow();
    const releasing = lease.release();
    const tooLate = rejection(lease.setAttached(true));
    await Promise.all([renewing.catch(() => undefined), releasing]);
    expect((await tooLate).reason).toBe("lease_lost");
    expect(await cluster.lock()).toMatchObject({ owner: null, attached: false });
    await lease.release();
  });

  it.each([
    ["", (async (_, effect) => effect()) satisfies Network],
    [", also when every answer to that is lost", losesAnswersToWrites],
  ])("of a destroyed sandbox leaves nothing behind%s", async (_, network) => {
    const { cluster, id, a, lease } = await heldByA();
    await (await a.states.claim(id, 1)).commit({ checkpoint: 1 });
    a.network = network;
    await lease.remove();
    expect(await Array.fromAsync(cluster.store.list(""))).toEqual([]);
    expect({ isHeld: lease.isHeld, pending: cluster.clock.pending }).toEqual({ isHeld: false, pending: 0 });
  });

  it("whose lock was not written by a node is refused, and the lock stays unchanged", async () => {
    const cluster = new Cluster();
    await cluster.store.put(`locks/${cluster.id}.lock`, new TextEncoder().encode('{"owner":'));
    const error = await rejection(cluster.start("a").leases.acquire(cluster.id));
    expect(error).toMatchObject({ code: "data_loss", reason: "object_damaged" });
  });
});

describe("a node that was killed and started again", () => {
  it("resumes its lease, under the same epoch", async () => {
    const cluster = new Cluster();
    cluster.start("a").leases.acquire(cluster.id);
    await cluster.clock.advance(1_000);
    const again = cluster.start("a");
    const lease = await again.leases.resume(cluster.id, 1);
    expect(lease).toMatchObject({ epoch: 1, isHeld: true });
    expect(again.leases.held(cluster.id)).toBe(lease);
  });

  it("learns that its lease has another owner or epoch", async () => {
    const { cluster, id, a } = await heldByA();
    a.leases.dispose();
    expect(await cluster.start("a").leases.resume(id, 7)).toBeUndefined();
    await cluster.clock.advance(FOR_EVER_MS);
    acquired(await cluster.start("b").leases.acquire(id));
    expect(await cluster.start("a").leases.resume(id, 1)).toBeUndefined();
  });

  it("may acquire its old lease immediately", async () => {
    const { cluster, id, lease } = await heldByA();
    const again = acquired(await cluster.start("a").leases.acquire(id));
    expect(again).toMatchObject({ previous: "expired", lease: { epoch: 2 } });
    // A second program with the same name must not run the sandbox too.
    expect((await rejection(lease.renewNow())).reason).toBe("lease_lost");
  });
});
