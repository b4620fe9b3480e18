import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { Heartbeat } from "./heartbeat.ts";
import type { QmpClient } from "./qmp-client.ts";

type Monitor = Pick<QmpClient, "execute" | "isClosed">;

/** A monitor that answers as it is told to. */
function scripted(answer: () => Promise<object>): Monitor {
  return { isClosed: false, execute: (() => answer()) as Monitor["execute"] };
}

async function beat(answer: () => Promise<object>, passedMs: number): Promise<string[]> {
  const clock = new FakeClock();
  const heard: string[] = [];
  const heartbeat = new Heartbeat({ clock, monitor: scripted(answer), onSilent: (message) => heard.push(message) });
  await clock.advance(passedMs);
  heartbeat.stop();
  return heard;
}

describe("the heartbeat of a machine", () => {
  it("goes on for as long as the machine answers", async () => {
    let asked = 0;
    const answer = async () => {
      asked++;
      return { status: "running", running: true };
    };
    expect(await beat(answer, 60_000)).toEqual([]);
    expect(asked).toBe(12);
  });

  it("tells once of a machine that does not answer any more", async () => {
    expect(await beat(() => new Promise(() => {}), 120_000)).toEqual([expect.stringContaining("30 s")]);
  });

  it("tells of a machine that cannot go on", async () => {
    const answer = async () => ({ status: "internal-error", running: false });
    expect(await beat(answer, 10_000)).toEqual([expect.stringContaining("internal-error")]);
  });

  it("leaves it to the monitor to tell of a machine that is gone", async () => {
    expect(await beat(() => Promise.reject(new Error("gone")), 120_000)).toEqual([]);
  });
});
