import type { PingAgent } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { GuestPulse } from "./guest-pulse.ts";

interface Scene {
  readonly ask: PingAgent;
  readonly isHeard?: () => boolean;
  readonly isStill?: () => boolean;
}

async function watch({ ask, isHeard = () => false, isStill = () => false }: Scene, passedMs: number) {
  const clock = new FakeClock();
  const reported: string[] = [];
  const pulse = new GuestPulse(ask, {
    clock,
    takeHeard: isHeard,
    isStill,
    onSilent: (message) => reported.push(message),
  });
  await clock.advance(passedMs);
  pulse.stop();
  return reported;
}

const never: PingAgent = () => new Promise(() => {});

describe("GuestPulse", () => {
  it("stays quiet while the agent answers", async () => {
    let asked = 0;
    const ask = async () => {
      asked++;
    };
    expect(await watch({ ask }, 150_000)).toEqual([]);
    expect(asked).toBe(10);
  });

  it("reports once an agent that is silent for a minute, and none that answers sooner", async () => {
    expect(await watch({ ask: never }, 300_000)).toEqual([expect.stringContaining("did not answer for 60 s")]);
    expect(await watch({ ask: never }, 74_000)).toEqual([]);
  });

  it("counts any byte as a sign of life", async () => {
    let beats = 0;
    expect(await watch({ ask: never, isHeard: () => ++beats % 3 === 0 }, 600_000)).toEqual([]);
  });

  it("waits for a machine that is paused for a checkpoint", async () => {
    expect(await watch({ ask: never, isStill: () => true }, 600_000)).toEqual([]);
  });

  it("asks again on a new channel", async () => {
    let asked = 0;
    const ask = () => (++asked === 1 ? Promise.reject(new Error("the channel is gone")) : Promise.resolve());
    expect(await watch({ ask }, 90_000)).toEqual([]);
    expect(asked).toBe(6);
  });

  it("cancels its question when it is stopped", async () => {
    const clock = new FakeClock();
    let signal: AbortSignal | undefined;
    const ask: PingAgent = (given) => {
      signal = given;
      return new Promise(() => {});
    };
    const pulse = new GuestPulse(ask, { clock, takeHeard: () => false, isStill: () => false, onSilent: () => {} });
    await clock.advance(15_000);
    expect(signal?.aborted).toBe(false);
    pulse.stop();
    expect(signal?.aborted).toBe(true);
  });
});
