import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { Progress } from "./progress.ts";

function start(isShown = true) {
  const clock = new FakeClock();
  const written: string[] = [];
  const progress = new Progress("copying", { isShown, clock, write: (text) => void written.push(text) });
  return { clock, written, progress };
}

describe("progress", () => {
  it("shows nothing for work that takes under a second", async () => {
    const { clock, written, progress } = start();
    await clock.advance(999);
    progress[Symbol.dispose]();
    await clock.advance(5000);
    expect(written).toEqual([]);
  });

  it("shows the amount and the speed, and erases its line", async () => {
    const { clock, written, progress } = start();
    progress.add(10 * 1024 * 1024);
    await clock.advance(1000);
    expect(written).toEqual(["\r\x1b[Kcopying… 10.0 MiB, 10.0 MiB/s, 1 s"]);
    progress.becomes("unpacking");
    await clock.advance(1000);
    expect(written.at(-1)).toBe("\r\x1b[Kunpacking… 10.0 MiB, 5.00 MiB/s, 2 s");
    progress[Symbol.dispose]();
    expect(written.at(-1)).toBe("\r\x1b[K");
  });

  it("shows nothing when it is hidden", async () => {
    const { clock, written } = start(false);
    await clock.advance(5000);
    expect(written).toEqual([]);
  });
});
