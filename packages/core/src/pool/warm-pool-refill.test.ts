import { describe, expect, it } from "vitest";
import { alpine, BootYard, type YardMember } from "../testing/boot-yard.ts";

const debian = { image: "debian", memoryMib: 256 };

describe("a refill", () => {
  it("follows a claim immediately, without a timer", async () => {
    await using yard = new BootYard({ sweepIntervalMs: 1e9 });
    await yard.fill(alpine, 2);
    await yard.clock.advance(600_000);
    expect(yard.started).toBe(2);
    await yard.pool.claim(alpine);
    await yard.clock.advance(0);
    expect(yard.started).toBe(3);
  });

  it("lets the claimer continue first, for the configured time", async () => {
    await using yard = new BootYard({ refillDelayMs: 40 });
    await yard.fill(alpine, 2);
    await yard.pool.claim(alpine);
    await yard.clock.advance(30);
    await yard.pool.claim(alpine);
    expect(yard.started).toBe(2);
    await yard.clock.advance(10);
    expect(yard.started).toBe(4);
  });

  it("counts boots under way: many claims in a row do not boot more than the target", async () => {
    await using yard = new BootYard({ maxBoots: 100 });
    await yard.fill(alpine, 3);
    for (let turn = 0; turn < 5; turn++) {
      void yard.pool.claim(alpine);
      await yard.clock.advance(0);
    }
    expect(yard.boots).toHaveLength(3);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ ready: 0, booting: 3 });
  });

  it("immediately follows the death of an instance that had lived long enough", async () => {
    await using yard = new BootYard({ backOff: { firstMs: 1000, mostMs: 5000 } });
    const [member] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.clock.advance(5000);
    yard.pool.remove(member);
    expect(yard.pool.remove(member)).toBe(false);
    await yard.clock.advance(0);
    expect(yard.boots).toHaveLength(1);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ failures: 0, retryInMs: null });
  });

  it("never exceeds the limit of concurrent boots, and serves keys in turn", async () => {
    await using yard = new BootYard({ maxBoots: 2 });
    yard.pool.setTarget(alpine, 6);
    await yard.setTarget(debian, 1);
    expect(yard.boots.map(({ key }) => key)).toEqual([alpine, debian]);
    while (yard.boots.length > 0) {
      expect(yard.boots.length).toBeLessThanOrEqual(2);
      await yard.finish();
    }
    expect(yard.pool.stats()).toMatchObject([{ ready: 6 }, { ready: 1 }]);
  });
});

describe("a lowered target", () => {
  it("ends boots first, and then discards the oldest instances", async () => {
    await using yard = new BootYard();
    const [oldest, next] = (await yard.fill(alpine, 2)) as [YardMember, YardMember];
    await yard.setTarget(alpine, 4);
    const signals = yard.boots.map(({ signal }) => signal);
    await yard.setTarget(alpine, 1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect([oldest.isDiscarded, next.isDiscarded]).toEqual([true, false]);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ target: 1, ready: 1, booting: 0, failures: 0 });
    expect(yard.errors).toEqual([]);
  });

  it("leaves a boot that a claim waits for, and forgets the key when it is done", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 2);
    const waiting = yard.pool.claim(alpine);
    await yard.setTarget(alpine, 0);
    expect(yard.boots).toHaveLength(1);
    const member = await yard.finish();
    expect(await waiting).toBe(member);
    expect(member.isDiscarded).toBe(false);
    expect(yard.pool.stats()).toEqual([]);
  });

  it("discards the instance of a boot that did not stop in time", async () => {
    await using yard = new BootYard({ maxBoots: 1 });
    yard.obeysAbort = false;
    await yard.setTarget(alpine, 1);
    yard.pool.setTarget(alpine, 0);
    await yard.setTarget(alpine, 1);
    expect(yard.boots).toHaveLength(1);
    const late = await yard.finish();
    expect(late.isDiscarded).toBe(true);
    expect(yard.boots).toHaveLength(1);
  });

  it("must be a number of instances", async () => {
    await using yard = new BootYard();
    for (const target of [-1, 1.5, Number.NaN]) {
      expect(() => yard.pool.setTarget(alpine, target)).toThrow(/expected a whole number of instances/);
    }
  });
});

describe("a boot that fails", () => {
  it("is retried after a pause that doubles up to a limit, and is reset by a success", async () => {
    await using yard = new BootYard({ backOff: { firstMs: 1000, mostMs: 5000 } });
    await yard.setTarget(alpine, 1);
    for (const pauseMs of [1000, 2000, 4000, 5000, 5000]) {
      await yard.fail();
      expect(yard.pool.statsOf(alpine)).toMatchObject({ retryInMs: pauseMs, booting: 0 });
      await yard.clock.advance(pauseMs - 1);
      expect(yard.boots).toHaveLength(0);
      await yard.clock.advance(1);
      expect(yard.boots).toHaveLength(1);
    }
    await yard.finish();
    expect(yard.pool.statsOf(alpine)).toMatchObject({ ready: 1, failures: 5, retryInMs: null });
    expect(yard.errors).toHaveLength(5);
    await yard.pool.claim(alpine);
    await yard.clock.advance(0);
    await yard.fail();
    expect(yard.pool.statsOf(alpine)).toMatchObject({ retryInMs: 1000 });
  });

  it("together with others counts once, and one boot at a time tests whether boots work again", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 3);
    for (let left = 3; left > 0; left--) await yard.fail();
    expect(yard.pool.statsOf(alpine)).toMatchObject({ failures: 3, retryInMs: 1000 });
    await yard.clock.advance(1000);
    expect(yard.boots).toHaveLength(1);
    await yard.finish();
    expect(yard.boots).toHaveLength(2);
  });

  it("delays no other key, and claims do not cause more retries", async () => {
    await using yard = new BootYard();
    yard.pool.setTarget(alpine, 1);
    await yard.setTarget(debian, 1);
    await yard.fail();
    for (let turn = 0; turn < 10; turn++) {
      expect(await yard.pool.claim(alpine)).toBeUndefined();
      await yard.clock.advance(1);
    }
    expect(yard.boots.map(({ key }) => key)).toEqual([debian]);
  });

  it("includes one whose instance dies soon after, so that a broken image does not boot endlessly", async () => {
    await using yard = new BootYard();
    await yard.setTarget(alpine, 1);
    for (const pauseMs of [1000, 2000, 4000]) {
      yard.pool.remove(await yard.finish());
      expect(yard.pool.statsOf(alpine)).toMatchObject({ retryInMs: pauseMs });
      await yard.clock.advance(pauseMs);
      expect(yard.boots).toHaveLength(1);
    }
  });

  it("by throwing is treated like one that rejects", async () => {
    await using yard = new BootYard({
      boot: () => {
        throw new Error("no such image");
      },
    });
    await yard.setTarget(alpine, 1);
    expect(yard.errors).toMatchObject([{ code: "internal", message: "no such image" }]);
    expect(yard.pool.statsOf(alpine)).toMatchObject({ failures: 1, retryInMs: 1000 });
  });
});

describe("a cold boot", () => {
  it("shares the limit and precedes refills, even those that could start first", async () => {
    await using yard = new BootYard({ maxBoots: 1 });
    await yard.setTarget(alpine, 3);
    const cold = Promise.withResolvers<string>();
    const running = yard.pool.withBootSlot(() => cold.promise);
    await yard.finish();
    expect(yard.boots).toHaveLength(0);
    cold.resolve("booted");
    expect(await running).toBe("booted");
    await yard.clock.advance(0);
    expect(yard.boots).toHaveLength(1);
  });

  it("after a miss gets its slot before the refill that the same claim caused", async () => {
    await using yard = new BootYard({ maxBoots: 1 });
    const [dead] = (await yard.fill(alpine, 1)) as [YardMember];
    await yard.clock.advance(60_000);
    dead.isAlive = false;
    expect(await yard.pool.claim(alpine)).toBeUndefined();
    const cold = Promise.withResolvers<void>();
    const running = yard.pool.withBootSlot(() => cold.promise);
    await yard.clock.advance(0);
    expect(yard.boots).toHaveLength(0);
    cold.resolve();
    await running;
    await yard.clock.advance(0);
    expect(yard.boots).toHaveLength(1);
  });
});
