import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { StopSignals } from "./stop-signals.ts";

function setUp() {
  const source = new EventEmitter();
  const exits: number[] = [];
  const clock = { nowMs: 0 };
  const onSecond = (code: number) => void exits.push(code);
  const signals = new StopSignals({ source, onSecond, monotonicMs: () => clock.nowMs });
  return { source, exits, clock, signals };
}

describe("StopSignals", () => {
  it("resolves on the first signal, and ends the program on the second", async () => {
    const { source, exits, clock, signals } = setUp();
    source.emit("SIGTERM", "SIGTERM");
    expect(await signals.first).toBe("SIGTERM");
    expect(exits).toEqual([]);
    clock.nowMs = 1000;
    source.emit("SIGINT", "SIGINT");
    source.emit("SIGTERM", "SIGTERM");
    expect(exits).toEqual([130, 143]);
  });

  it("counts two signals of one Ctrl-C once", () => {
    const { source, exits, clock } = setUp();
    source.emit("SIGINT", "SIGINT");
    clock.nowMs = 20;
    source.emit("SIGINT", "SIGINT");
    expect(exits).toEqual([]);
  });

  it("removes its listeners when disposed", () => {
    const { source, signals } = setUp();
    signals[Symbol.dispose]();
    expect(source.listenerCount("SIGINT") + source.listenerCount("SIGTERM")).toBe(0);
  });
});
