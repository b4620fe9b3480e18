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

describe("the heartbeat of a machine", () => {
  it("goes on for as long as the machine answers", async () => {
    expect(await beat(async () => undefined, 60_000)).toEqual({ heard: [], beats: 12 });
  });

  it("tells once of a machine that does not answer any more", async () => {
    const { heard } = await beat(() => new Promise(() => {}), 120_000);
    expect(heard).toEqual([expect.stringContaining("30 s")]);
  });

  it("tells once of a machine that cannot go on", async () => {
    expect(await beat(async () => "it stands still", 60_000)).toEqual({ heard: ["it stands still"], beats: 0 });
  });

  it("leaves it to others to tell of a machine that is gone", async () => {
    const { heard } = await beat(() => Promise.reject(new Error("gone")), 120_000);
    expect(heard).toEqual([]);
  });
});
