import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { repairLock } from "./repair-lock.ts";
import { acquired, away, DURATION_MS, heldByA, losesAnswersToWrites } from "./testing/cluster.ts";

/** An owner that was suspended after it claimed the state, and another node that has acquired the lease since. */
async function stale() {
  const { cluster, id, a, b, lease } = await heldByA();
  const old = await a.states.claim(id, lease.epoch);
  await old.commit("by a");
  a.network = away;
  await cluster.clock.advance(2 * DURATION_MS);
  a.network = (_, effect) => effect();
  const next = acquired(await b.leases.acquire(id)).lease;
  return { cluster, a, b, old, next };
}

describe("a repair of a lock", () => {
  const repair = async ({ cluster, id }: Awaited<ReturnType<typeof heldByA>>, acceptsOlderState = false) => {
    const { store, clock } = cluster;
    const done = repairLock(id, { store, clock, waitMs: DURATION_MS, acceptsOlderState });
    await clock.advance(DURATION_MS);
    return await done;
  };

  it("lets a node take the sandbox with its newest state after the lock disappeared", async () => {
    const bed = await heldByA();
    const { cluster, id, a, b, lease } = bed;
    await (await a.states.claim(id, 1)).commit("one");
    await lease.release();
    expect(await repair(bed)).toBe("sound");
    await cluster.store.delete(`locks/${id}.lock`);
    expect(await repair(bed)).toBe("written");
    const { lease: next } = acquired(await b.leases.acquire(id));
    expect((await b.states.claim(id, next.epoch)).content).toBe("one");
  });

  it("accepts an older state only on request, and does not touch the lock of an owner", async () => {
    const bed = await heldByA();
    const { cluster, id, a, b, lease } = bed;
    const state = await a.states.claim(id, 1);
    await state.commit("old");
    const old = await cluster.store.get(`states/${id}.state`);
    await state.commit("new");
    await lease.renewNow();
    await cluster.store.put(`states/${id}.state`, old?.bytes ?? new Uint8Array());
    expect(await repair(bed, true)).toBe("sound");
    await lease.release();
    expect(await repair(bed)).toBe("sound");
    expect(await repair(bed, true)).toBe("written");
    const { lease: next } = acquired(await b.leases.acquire(id));
    expect((await b.states.claim(id, next.epoch)).content).toBe("old");
  });
});

describe("the state of a sandbox", () => {
  it("passes from owner to owner", async () => {
    const { id, a, b, lease } = await heldByA();
    const state = await a.states.claim(id, 1);
    expect(state.content).toBeUndefined();
    await state.commit({ checkpoint: "one" });
    await state.commit({ checkpoint: "two" });
    await lease.release();
    acquired(await b.leases.acquire(id));
    expect((await b.states.claim(id, 2)).content).toEqual({ checkpoint: "two" });
    expect(await a.states.read(id)).toEqual({ checkpoint: "two" });
  });

  it("and its lock keep the fields that a newer version added, through every write of an owner of this version", async () => {
    const { cluster, id, a, b, lease } = await heldByA();
    const state = await a.states.claim(id, 1);
    await state.commit("by a");
    await lease.release();
    const { store } = cluster;
    for (const key of [`locks/${id}.lock`, `states/${id}.state`]) {
      const stored = JSON.parse(new TextDecoder().decode((await store.get(key))?.bytes));
      await store.put(key, new TextEncoder().encode(JSON.stringify({ ...stored, later: { added: true } })));
    }
    const next = acquired(await b.leases.acquire(id)).lease;
    await (await b.states.claim(id, next.epoch)).commit("by b");
    await cluster.clock.advance(DURATION_MS);
    await next.release();
    for (const key of [`locks/${id}.lock`, `states/${id}.state`]) {
      const stored = JSON.parse(new TextDecoder().decode((await store.get(key))?.bytes));
      expect(stored.later).toEqual({ added: true });
    }
    expect(await a.states.read(id)).toBe("by b");
  });

  it("is not written by an owner whose lease has ended", async () => {
    const { cluster, a, old } = await stale();
    expect(await rejection(old.commit("late"))).toMatchObject({ code: "conflict", reason: "lease_lost" });
    expect((await rejection(a.states.claim(cluster.id, 1))).reason).toBe("lease_lost");
    expect(await a.states.read(cluster.id)).toBe("by a");
  });

  it("is not written by a delayed commit of an earlier owner", async () => {
    const { cluster, id, a, b } = await heldByA();
    const old = await a.states.claim(id, 1);
    await old.commit("by a");
    const arrive = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<unknown>();
    a.network = async (call, effect) => {
      if (call.operation === "put" && call.key.startsWith("states/")) arrived.resolve(arrive.promise.then(effect));
      return away(call, effect);
    };
    const error = rejection(old.commit("late"));
    await cluster.clock.advance(2 * DURATION_MS);
    acquired(await b.leases.acquire(id));
    const claimed = await b.states.claim(id, 2);
    arrive.resolve();
    expect(await arrived.promise).toBeUndefined();
    expect((await error).reason).toBe("lease_lost");
    expect(claimed.content).toBe("by a");
    await claimed.commit("by b");
    expect(await b.states.read(id)).toBe("by b");
  });

  it("is not claimed under a past epoch", async () => {
    const { cluster, b } = await stale();
    await b.states.claim(cluster.id, 2);
    const liar = cluster.start("a");
    const lock = { ...(await cluster.lock()), owner: "a", epoch: 1 };
    await cluster.store.put(`locks/${cluster.id}.lock`, new TextEncoder().encode(JSON.stringify(lock)));
    expect(await liar.leases.resume(cluster.id, 1)).toBeDefined();
    expect((await rejection(liar.states.claim(cluster.id, 1))).reason).toBe("lease_lost");
  });

  it("is still written by its owner after it was damaged and put back from a backup", async () => {
    const { cluster, id, a } = await heldByA();
    const state = await a.states.claim(id, 1);
    await state.commit("one");
    const key = `states/${id}.state`;
    const whole = (await cluster.store.get(key))?.bytes ?? new Uint8Array();
    await cluster.store.put(key, whole.subarray(1));
    await rejection(state.commit("lost"));
    await cluster.store.put(key, whole);
    await state.commit("two");
    expect(await a.states.read(id)).toBe("two");
  });

  it("is committed once when the answer is lost", async () => {
    const { id, a } = await heldByA();
    const state = await a.states.claim(id, 1);
    a.network = losesAnswersToWrites;
    await state.commit("one");
    a.network = (_, effect) => effect();
    await state.commit("two");
    expect(await a.states.read(id)).toBe("two");
  });

  it("is committed after another program wrote the same version again", async () => {
    const { cluster, id, a } = await heldByA();
    const state = await a.states.claim(id, 1);
    await state.commit("one");
    const { bytes = new Uint8Array() } = (await cluster.store.get(`states/${id}.state`)) ?? {};
    await cluster.store.put(`states/${id}.state`, bytes);
    await state.commit("two");
    expect(await a.states.read(id)).toBe("two");
  });

  it("is refused if it is older than its lock records, and accepted again once the newest is back", async () => {
    const { cluster, id, a, b, lease } = await heldByA();
    const key = `states/${id}.state`;
    const state = await a.states.claim(id, 1);
    await state.commit("old");
    const old = await cluster.store.get(key);
    await state.commit("new");
    const newest = await cluster.store.get(key);
    await lease.release();
    await cluster.store.put(key, old?.bytes ?? new Uint8Array());
    const { lease: next } = acquired(await b.leases.acquire(id));
    expect(await rejection(b.states.claim(id, next.epoch))).toMatchObject({
      code: "data_loss",
      reason: "object_replayed",
    });
    await cluster.store.put(key, newest?.bytes ?? new Uint8Array());
    expect((await b.states.claim(id, next.epoch)).content).toBe("new");
  });

  it("of an owner that crashed is refused if it is older than at the last renewal", async () => {
    const { cluster, id, a, b, lease } = await heldByA();
    const key = `states/${id}.state`;
    const state = await a.states.claim(id, 1);
    await state.commit("old");
    const old = await cluster.store.get(key);
    await state.commit("new");
    await lease.renewNow();
    a.leases.dispose();
    await cluster.store.put(key, old?.bytes ?? new Uint8Array());
    await cluster.clock.advance(2 * DURATION_MS);
    const { lease: next } = acquired(await b.leases.acquire(id));
    expect(await rejection(b.states.claim(id, next.epoch))).toMatchObject({ reason: "object_replayed" });
  });

  it("is reported at once if it is damaged, although the lease lasts", async () => {
    const { cluster, id, a } = await heldByA();
    await cluster.store.put(`states/${id}.state`, new Uint8Array(3));
    expect(await rejection(a.states.claim(id, 1))).toMatchObject({ code: "data_loss", reason: "object_damaged" });
  });

  it("is claimed even if the answer to the claim is lost", async () => {
    const { id, a } = await heldByA();
    a.network = losesAnswersToWrites;
    expect((await a.states.claim(id, 1)).content).toBeUndefined();
  });

  it("rejects at the deadline when the store does not answer", async () => {
    const { cluster, id, a } = await heldByA();
    const state = await a.states.claim(id, 1);
    a.network = away;
    const error = rejection(state.commit("one"));
    await cluster.clock.advance(DURATION_MS);
    expect(await error).toMatchObject({ reason: "lease_lost", cause: { message: "the store is away" } });
  });

  it("of a restarted node is safe from delayed writes of its earlier process", async () => {
    const { cluster, id, a } = await heldByA();
    const old = await a.states.claim(id, 1);
    const again = cluster.start("a");
    await again.leases.resume(id, 1);
    await (await again.states.claim(id, 1)).commit("new");
    expect((await rejection(old.commit("old"))).reason).toBe("lease_lost");
    expect(await again.states.read(id)).toBe("new");
  });
});
