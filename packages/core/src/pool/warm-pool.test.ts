import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { alpine, BootYard, type YardMember } from "../testing/boot-yard.ts";

describe("a claim", () => {
  it("gets the instance that has waited longest, and no two get the same", async () => {
    await using yard = new BootYard();
    const [first, second] = await yard.fill(alpine, 2);
    const claimed = await Promise.all([yard.pool.claim(alpine), yard.pool.claim(alpine), yard.pool.claim(alpine)]);
    expect(claimed).toEqual([first, second, undefined]);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ hits: 2, misses: 1, meanWaitMs: 0 });
  });

  it("gets only an instance with exactly its limits", async () => {
    await using yard = new BootYard();
    await yard.fill(alpine, 1);
    expect(await yard.pool.claim({ ...alpine, memoryMib: 512 })).toBeUndefined();
    expect(await yard.pool.claim({ ...alpine })).toMatchObject({ key: alpine });
  });

  it("of a key without a target misses immediately, and leaves nothing in memory", async () => {
    await using yard = new BootYard();
    for (let memoryMib = 1; memoryMib <= 100; memoryMib++) {
      expect(await yard.pool.claim({ ...alpine, memoryMib })).toBeUndefined();
    }
    expect(yard.pool.stats()).toEqual([]);
  });

  it("never gets an instance that died while it waited", async () => {
    await using yard = new BootYard();
    const [dead, removed, alive] = (await yard.fill(alpine, 3)) as [YardMember, YardMember, YardMember];
    dead.isAlive = false;
    expect(yard.pool.remove(removed)).toBe(true);
    expect(await yard.pool.claim(alpine)).toBe(alive);
    expect(dead.isDiscarded && removed.isDiscarded).toBe(true);
    expect(alive.isDiscarded).toBe(false);
  });

  it("never gets an instance that is removed during its health check", async () => {
    const checked = Promise.withResolvers<boolean>();
    await using yard = new BootYard({ isHealthy: () => checked.promise });
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    const claim = yard.pool.claim(alpine);
    yard.pool.remove(member);
    checked.resolve(true);
    expect(await claim).toBeUndefined();
  });

  it("does not wait forever for an instance that does not answer", async () => {
    await using yard = new BootYard({ healthTimeoutMs: 500 });
    const [silent, alive] = (await yard.fill(alpine, 2)) as [YardMember, YardMember];
    silent.isSilent = true;
    const claim = yard.pool.claim(alpine);
    await yard.clock.advance(500);
    expect(await claim).toBe(alive);
    expect(silent.isDiscarded).toBe(true);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ hits: 1, meanWaitMs: 500 });
  });

  it("treats an instance whose health check fails as unhealthy", async () => {
    await using yard = new BootYard({
      isHealthy: () => {
        throw new Error("connection lost");
      },
    });
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    expect(await yard.pool.claim(alpine)).toBeUndefined();
    expect(member.isDiscarded).toBe(true);
  });

  it("never gets an instance over the age limit, even between two sweeps", async () => {
    await using yard = new BootYard({ maxAgeMs: 5000, sweepIntervalMs: 60_000 });
    const [old] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.clock.advance(5000);
    expect(await yard.pool.claim(alpine)).toBeUndefined();
    expect(old.isDiscarded).toBe(true);
    await yard.clock.advance(0);
    const young = await yard.finish();
    await yard.clock.advance(4999);
    expect(await yard.pool.claim(alpine)).toBe(young);
  });

  it("waits for a running boot without another claim", async () => {
    await using yard = new BootYard();
    yard.pool.setTarget(alpine, 1);
    await yard.clock.advance(300);
    const waiting = yard.pool.claim(alpine);
    expect(await yard.pool.claim(alpine)).toBeUndefined();
    await yard.clock.advance(200);
    const member = await yard.finish();
    expect(await waiting).toBe(member);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ hits: 1, misses: 1, meanWaitMs: 200, ready: 0, booting: 1 });
  });

  it("misses when the boot it waits for fails", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 2);
    const first = yard.pool.claim(alpine);
    const second = yard.pool.claim(alpine);
    await yard.fail();
    expect(await second).toBeUndefined();
    const member = await yard.finish();
    expect(await first).toBe(member);
  });

  it("that is canceled leaves its boot to others", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 1);
    const caller = new AbortController();
    const canceled = rejection(yard.pool.claim(alpine, caller.signal));
    caller.abort();
    expect(await canceled).toMatchObject({ code: "canceled" });
    expect(await rejection(yard.pool.claim(alpine, caller.signal))).toMatchObject({ code: "canceled" });
    const member = await yard.finish();
    expect(await yard.pool.claim(alpine)).toBe(member);
  });

  it("that is canceled during a health check leaves the instance to the next claim", async () => {
    await using yard = new BootYard();
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.setTarget(alpine, 2);
    member.isSilent = true;
    const caller = new AbortController();
    const canceled = rejection(yard.pool.claim(alpine, caller.signal));
    const waiting = yard.pool.claim(alpine);
    member.isSilent = false;
    caller.abort();
    expect(await canceled).toMatchObject({ code: "canceled" });
    expect(await waiting).toBe(member);
  });

  it("that is canceled after the target was lowered leaves no surplus", async () => {
    await using yard = new BootYard();
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    member.isSilent = true;
    const caller = new AbortController();
    const canceled = rejection(yard.pool.claim(alpine, caller.signal));
    yard.pool.setTarget(alpine, 0);
    expect(member.isDiscarded).toBe(false);
    caller.abort();
    await canceled;
    expect(member.isDiscarded).toBe(true);
    expect(yard.pool.stats()).toEqual([]);
  });
});

describe("an idle sweep", () => {
  it("replaces only instances that are dead, silent or too old", async () => {
    await using yard = new BootYard({ maxAgeMs: 25_000, healthTimeoutMs: 500 });
    const [old] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.clock.advance(15_000);
    const [dead, silent, fine] = (await yard.fill(alpine, 4)) as [YardMember, YardMember, YardMember];
    dead.isAlive = false;
    silent.isSilent = true;
    await yard.clock.advance(15_500);
    expect([old, dead, silent, fine].map((member) => member.isDiscarded)).toEqual([true, true, true, false]);
    await yard.clock.advance(1000);
    await yard.finish();
    await yard.clock.advance(0);
    while (yard.boots.length > 0) await yard.finish();
    expect(yard.pool.statsOf(alpine)).toMatchObject({ ready: 4, booting: 0 });
  });

  it("does not prevent claims", async () => {
    await using yard = new BootYard({ healthTimeoutMs: 1000 });
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    member.isSilent = true;
    await yard.clock.advance(10_000);
    member.isSilent = false;
    expect(await yard.pool.claim(alpine)).toBe(member);
    await yard.clock.advance(1000);
    expect(member.isDiscarded).toBe(false);
  });

  it("has no timer while the pool is empty", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 1);
    expect(yard.clock.pending).toBe(0);
    await yard.finish();
    expect(yard.clock.pending).toBe(1);
    yard.pool.setTarget(alpine, 0);
    await yard.clock.advance(10_000);
    expect(yard.clock.pending).toBe(0);
  });
});

describe("a closed pool", () => {
  it("has ended its boots, discarded its instances, answered its claims, and keeps no timer", async () => {
    await using yard = new BootYard();
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.setTarget(alpine, 3);
    await yard.pool.claim(alpine);
    const waiting = yard.pool.claim(alpine);
    await yard.finish();
    const signals = yard.boots.map(({ signal }) => signal);
    await yard.pool.close();
    await waiting;
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
    expect(yard.boots).toEqual([]);
    expect(yard.members.filter(({ isDiscarded }) => !isDiscarded)).toEqual([member, await waiting]);
    expect(yard.clock.pending).toBe(0);
    expect(await yard.pool.claim(alpine)).toBeUndefined();
    expect(() => yard.pool.setTarget(alpine, 1)).toThrow(/closed/);
    expect(await rejection(yard.pool.withBootSlot(async () => {}))).toMatchObject({ reason: "pool_closed" });
    expect(yard.errors).toEqual([]);
  });

  it("waits for a boot that does not stop, and discards its instance", async () => {
    await using yard = new BootYard();
    yard.obeysAbort = false;
    await yard.setTarget(alpine, 1);
    let isClosed = false;
    const closing = yard.pool.close().then(() => {
      isClosed = true;
    });
    await yard.clock.advance(0);
    expect(isClosed).toBe(false);
    const late = await yard.finish();
    await closing;
    expect(late.isDiscarded).toBe(true);
  });

  it("closes although an instance could not be discarded, and reports it", async () => {
    await using yard = new BootYard({
      onError: (error) => {
        yard.errors.push(error);
        throw new Error("the listener fails, too");
      },
    });
    await yard.fill(alpine, 2);
    yard.discardError = new Error("busy");
    await yard.pool.close();
    expect(yard.errors.map(({ message }) => message)).toEqual(["busy", "busy"]);
  });
});
