import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { Interruption } from "./interruption.ts";

class FakeProgram extends EventEmitter {
  readonly exits: number[] = [];
  nowMs = 0;

  exit(code: number): void {
    this.exits.push(code);
  }
}

function interruptible() {
  const program = new FakeProgram();
  const interruption = new Interruption(program, () => program.nowMs);
  const receive = (signal: string) => program.emit(signal, signal);
  return { program, interruption, receive };
}

describe("an interruption", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGQUIT", 131],
  ])("by %s aborts what runs and makes the exit code %i", (signal, exitCode) => {
    const { program, interruption, receive } = interruptible();
    receive(signal);
    expect(interruption.signal.aborted).toBe(true);
    expect(interruption.exitCode).toBe(exitCode);
    expect(program.exits).toEqual([]);
  });

  it.each([
    ["counts once when one Ctrl-C arrives twice", 100, []],
    ["ends the program at once on a second Ctrl-C", 1000, [130]],
  ])("%s", (_, afterMs, exits) => {
    const { program, receive } = interruptible();
    receive("SIGINT");
    program.nowMs = afterMs;
    receive("SIGINT");
    expect(program.exits).toEqual(exits);
  });

  it("keeps its first exit code", () => {
    const { interruption, receive } = interruptible();
    interruption.interrupt(141);
    receive("SIGTERM");
    expect(interruption.exitCode).toBe(141);
  });

  it("leaves no listener behind", () => {
    const { program, interruption } = interruptible();
    interruption[Symbol.dispose]();
    expect(program.eventNames()).toEqual([]);
  });
});
