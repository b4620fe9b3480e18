import fc from "fast-check";
import { expect, it } from "vitest";
import { BootYard, type YardMember } from "../testing/boot-yard.ts";

const keys = [
  { image: "alpine", memoryMib: 256 },
  { image: "alpine", memoryMib: 512 },
] as const;
const MAX_BOOTS = 3;
const MAX_AGE_MS = 30_000;

const index = fc.nat({ max: 9 });
const key = fc.constantFrom(...keys);
const step = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant("target" as const), key, target: fc.nat({ max: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("claim" as const), key }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("claimAndCancel" as const), key, turns: fc.nat({ max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cold" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("endCold" as const) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("finish" as const), index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("die" as const), index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), index }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(0, 0, 0, 700, 12_000) }) },
);
const steps = fc.array(step, { minLength: 20, maxLength: 80, size: "max" });

async function microtasks(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await undefined;
}

it("a warm pool keeps its promises in any order of events", { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (story, obeysAbort) => {
      const yard = new BootYard({ maxBoots: MAX_BOOTS, maxAgeMs: MAX_AGE_MS, sweepIntervalMs: 10_000 });
      yard.obeysAbort = obeysAbort;
      const { pool, clock, boots, members } = yard;
      const bornAtMs = new Map<YardMember, number>();
      const handedOut = new Set<YardMember>();
      const claims: Promise<void>[] = [];
      const cold: (() => void)[] = [];
      const coldRuns: Promise<void>[] = [];
      const lowered = new Set<object>();
      for (const one of keys) await yard.fill(one, 2);
      for (const member of members) bornAtMs.set(member, clock.monotonicMs());

      const claim = (one: (typeof keys)[number], signal?: AbortSignal) =>
        pool.claim(one, signal).then(
          (member) => {
            if (member === undefined) return;
            expect(handedOut.has(member)).toBe(false);
            expect(member).toMatchObject({ key: one, isAlive: true, isDiscarded: false });
            expect(clock.monotonicMs() - (bornAtMs.get(member) ?? 0)).toBeLessThan(MAX_AGE_MS);
            handedOut.add(member);
          },
          (thrown) => expect(thrown).toMatchObject({ code: "canceled" }),
        );
      const check = () => {
        expect(boots.length + cold.length).toBeLessThanOrEqual(MAX_BOOTS);
        for (const stats of pool.stats()) {
          const isOver = stats.ready + stats.booting > stats.target;
          if (isOver) expect(lowered.has(stats.key)).toBe(true);
          else lowered.delete(stats.key);
        }
      };

      for (const one of story) {
        if (one.do === "target") {
          const before = pool.statsOf(one.key)?.target ?? 0;
          if (one.target < before) lowered.add(one.key);
          pool.setTarget(one.key, one.target);
        } else if (one.do === "claim") {
          claims.push(claim(one.key));
        } else if (one.do === "claimAndCancel") {
          const caller = new AbortController();
          claims.push(claim(one.key, caller.signal));
          void microtasks(one.turns).then(() => caller.abort());
        } else if (one.do === "cold") {
          coldRuns.push(pool.withBootSlot(() => new Promise<void>((resolve) => cold.push(resolve))));
        } else if (one.do === "endCold") {
          cold.shift()?.();
        } else if (one.do === "finish") {
          const boot = boots[one.index % Math.max(1, boots.length)];
          if (boot !== undefined) bornAtMs.set(boot.finish(), clock.monotonicMs());
        } else if (one.do === "fail") {
          boots[one.index % Math.max(1, boots.length)]?.fail();
        } else if (one.do === "die" || one.do === "remove") {
          // A pool cannot notice a death between a health check and its answer.
          await clock.advance(0);
          const waiting = members.filter((member) => !handedOut.has(member) && !member.isDiscarded);
          const victim = waiting[one.index % Math.max(1, waiting.length)];
          if (victim !== undefined && one.do === "die") victim.isAlive = false;
          if (victim !== undefined && one.do === "remove") pool.remove(victim);
        } else {
          await clock.advance(one.ms);
          check();
        }
        check();
      }

      // Without further events, and with successful boots, each key reaches exactly its target.
      for (let turn = 0; turn < 60 && (boots.length > 0 || turn < 10); turn++) {
        for (const end of cold.splice(0)) end();
        for (const boot of [...boots]) bornAtMs.set(boot.finish(), clock.monotonicMs());
        await clock.advance(1000);
      }
      for (const { target, ready, booting, retryInMs } of pool.stats()) {
        if (retryInMs === null) expect({ ready, booting }).toEqual({ ready: target, booting: 0 });
      }
      await Promise.all([...claims, ...coldRuns]);

      const closing = pool.close();
      for (const boot of [...boots]) boot.finish();
      await closing;
      expect(members.filter((member) => !member.isDiscarded && !handedOut.has(member))).toEqual([]);
      expect(members.filter((member) => member.isDiscarded && handedOut.has(member))).toEqual([]);
      expect(clock.pending).toBe(0);
    }),
    { numRuns: 60 },
  );
});
