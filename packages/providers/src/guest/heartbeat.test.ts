import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { Heartbeat, type HeartbeatOptions } from "./heartbeat.ts";

async function beat(ask: HeartbeatOptions["ask"], passedMs: number) {
  const clock = new FakeClock();
  const heard: string[] = [];
  let beats = 0;
  const heartbeat = new Heartbeat({
    clock,
    ask,
    onSilent: (message) => heard.push(message),
    onBeat: () => beats++,
  });
  await clock.advance(passedMs);
  heartbeat.stop();
  return { heard, beats };
}

describe("Heartbeat", () => {
  it("continues while the machine answers", async () => {
    expect(await beat(async () => undefined, 60_000)).toEqual({ heard: [], beats: 12 });
  });

  it("reports once a machine that stops answering", async () => {
    const { heard } = await beat(() => new Promise(() => {}), 120_000);
    expect(heard).toEqual([expect.stringContaining("30 s")]);
  });

  it("reports once a machine that has failed", async () => {
    expect(await beat(async () => "it has failed", 60_000)).toEqual({ heard: ["it has failed"], beats: 0 });
  });

  it("does not report a machine that is gone", async () => {
    const { heard } = await beat(() => Promise.reject(new Error("gone")), 120_000);
    expect(heard).toEqual([]);
  });
});
