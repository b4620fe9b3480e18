import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import type { InstanceInfo } from "./api-requests.ts";
import { Heartbeat } from "./heartbeat.ts";

const info: InstanceInfo = { id: "x", state: "Running", vmm_version: "1", app_name: "Firecracker" };

async function beat(answer: () => Promise<InstanceInfo>, passedMs: number) {
  const clock = new FakeClock();
  const heard: string[] = [];
  let beats = 0;
  const heartbeat = new Heartbeat({
    clock,
    api: { describe: answer },
    onSilent: (message) => heard.push(message),
    onBeat: () => beats++,
  });
  await clock.advance(passedMs);
  heartbeat.stop();
  return { heard, beats };
}

describe("the heartbeat of a machine", () => {
  it("goes on for as long as the machine answers", async () => {
    expect(await beat(async () => info, 60_000)).toEqual({ heard: [], beats: 12 });
  });

  it("tells once of a machine that does not answer any more", async () => {
    const { heard } = await beat(() => new Promise(() => {}), 120_000);
    expect(heard).toEqual([expect.stringContaining("30 s")]);
  });

  it("leaves it to others to tell of a machine that is gone", async () => {
    const { heard } = await beat(() => Promise.reject(new Error("gone")), 120_000);
    expect(heard).toEqual([]);
  });
});
